// The checks of the options of `attention`.

#include "attention/common/attention_check.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <cmath>

#include "attention/common/attention_augment.h"
#include "support/plain_tensor.h"

namespace nsimplex::dense {
namespace {

// Every option must be on the device of the query.
void check_device(const char* name, const at::Tensor& tensor, const at::Tensor& query) {
  TORCH_CHECK_VALUE(tensor.device() == query.device(), "[attention] ", name,
                    ": expected the query's device ", query.device(), ", got ", tensor.device());
}

void check_form(const Call& call, Form form) {
  if (form != Form::determinant) return;
  const c10::SymInt dim = call.query.sym_size(3),
                    chunk = static_cast<int64_t>(call.keys.size()) + 1;
  TORCH_CHECK_VALUE(
      holds((dim % chunk).sym_eq(0)),
      "[attention] query: form='determinant' expects a head dim divisible by N + 1 = ", chunk,
      ", got ", dim);
}

void check_key_lengths(const Call& call) {
  if (!call.options.key_lengths) return;
  const at::Tensor& lengths = *call.options.key_lengths;
  const int64_t order = static_cast<int64_t>(call.keys.size());
  TORCH_CHECK_TYPE(lengths.scalar_type() == at::kLong,
                   "[attention] key_lengths: expected int64 or int32, got ", lengths.scalar_type());
  TORCH_CHECK_VALUE(lengths.device() == call.query.device(),
                    "[attention] key_lengths: expected the query's device ", call.query.device(),
                    ", got ", lengths.device());
  const bool per_axis = lengths.dim() == 2;
  TORCH_CHECK_VALUE(
      (lengths.dim() == 1 || (per_axis && holds(lengths.sym_size(0).sym_eq(order)))) &&
          holds(lengths.sym_size(-1).sym_eq(call.query.sym_size(0))),
      "[attention] key_lengths: expected shape [", call.query.sym_size(0), "] or [", order, ", ",
      call.query.sym_size(0), "], got ", lengths.sym_sizes());
}

// Checks axes whose keys are seen by place.
void check_places_of_lengths(const Call& call, Distinct distinct) {
  if (!call.options.key_lengths || call.options.query_positions) return;
  const char* by = nullptr;
  if (distinct == Distinct::with_query) by = "distinct='with_query'";
  if (call.options.causal) by = "causal";
  for (size_t m = 0; m < call.keys.size(); ++m) {
    c10::SymBool everywhere = by == nullptr;
    if (!by && call.options.window) {
      const c10::SymIntArrayRef window = *call.options.window;
      everywhere = window[2 * m].sym_eq(-1).sym_and(window[2 * m + 1].sym_eq(-1));
    }
    check_places("attention", "keys", static_cast<int64_t>(m), by ? by : "a window",
                 call.query.sym_size(2), call.keys[m].sym_size(2), everywhere);
  }
}

void check_key_masks(const Call& call) {
  if (!call.options.key_masks) return;
  const at::TensorList masks = *call.options.key_masks;
  TORCH_CHECK_VALUE(masks.size() == call.keys.size(),
                    "[attention] key_masks: expected one for each of the ", call.keys.size(),
                    " keys, got ", masks.size());
  for (size_t m = 0; m < masks.size(); ++m) {
    const at::Tensor& mask = masks[m];
    const std::string name = "key_masks[" + std::to_string(m) + "]";
    TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool, "[attention] ", name, ": expected bool, got ",
                     mask.scalar_type());
    check_device(name.c_str(), mask, call.query);
    const c10::SymInt batch = call.query.sym_size(0), length = call.keys[m].sym_size(2);
    TORCH_CHECK_VALUE(mask.dim() == 2 && holds(mask.sym_size(0).sym_eq(batch)) &&
                          holds(mask.sym_size(1).sym_eq(length)),
                      "[attention] ", name, ": expected shape [", batch, ", ", length, "], got ",
                      mask.sym_sizes());
  }
}

void check_documents(const Call& call) {
  if (!call.options.cu_seqlens) return;
  const at::Tensor& bounds = *call.options.cu_seqlens;
  TORCH_CHECK_TYPE(bounds.scalar_type() == at::kLong,
                   "[attention] cu_seqlens: expected int64 or int32, got ", bounds.scalar_type());
  check_device("cu_seqlens", bounds, call.query);
  TORCH_CHECK_VALUE(bounds.dim() == 1 && holds(bounds.sym_size(0).sym_ge(1)),
                    "[attention] cu_seqlens: expected shape [documents + 1], got ",
                    bounds.sym_sizes());
  const c10::SymInt queries = call.query.sym_size(2);
  for (size_t m = 0; m < call.keys.size(); ++m) {
    TORCH_CHECK_VALUE(holds(call.keys[m].sym_size(2).sym_eq(queries)), "[attention] cu_seqlens: ",
                      "documents hold queries and keys alike, but the query has length ", queries,
                      " and keys[", m, "] has ", call.keys[m].sym_size(2));
  }
}

// A mask of pairs, as for order 1, would broadcast to other axes than intended. So every mask of
// higher order has a dimension for the queries. A mask that is the same for all queries must have
// their full length if it could be mistaken for the [.., Tq, T] mask of other libraries.
void check_mask_names_queries(const at::Tensor& mask, const std::vector<c10::SymInt>& expected) {
  const auto order = static_cast<int64_t>(expected.size()) - 3, dims = mask.dim();
  if (order == 1) return;
  const c10::SymInt queries = expected[2];
  std::vector<c10::SymInt> pairs(order + 1, 1);
  pairs[0] = queries;
  pairs[1] = expected[3];
  TORCH_CHECK_VALUE(dims > order, "[attention] mask: expected ", order + 1,
                    " dimensions or more at order ", order, ", the last of ",
                    c10::SymIntArrayRef(expected), ", got shape ", mask.sym_sizes(),
                    "; a mask of pairs has 1 for the other axes, as ", c10::SymIntArrayRef(pairs),
                    " for the first");
  if (dims == order + 3) return;
  const auto sure = [](const c10::SymBool& condition) {
    return condition.guard_or_false(__FILE__, __LINE__);
  };
  const bool for_all_queries = sure(mask.sym_size(-1 - order).sym_eq(1));
  const bool like_pairs = sure(mask.sym_size(-2).sym_eq(queries)) && !sure(queries.sym_eq(1)) &&
                          !sure(mask.sym_size(-1).sym_eq(1));
  TORCH_CHECK_VALUE(!(for_all_queries && like_pairs), "[attention] mask: shape ", mask.sym_sizes(),
                    " may be of pairs or of tuples at order ", order, "; expected all ", order + 3,
                    " dimensions, 1 where it broadcasts to ", c10::SymIntArrayRef(expected));
}

// A mask over the queries' tuples of keys of these lengths.
void check_tuple_mask(const Call& call, const char* name, const at::Tensor& mask,
                      const std::vector<c10::SymInt>& lengths) {
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool || is_floating(mask), "[attention] ", name,
                   ": expected bool or a floating dtype, got ", mask.scalar_type());
  check_device(name, mask, call.query);
  std::vector<c10::SymInt> expected = call.query.sym_sizes().slice(0, 3).vec();
  expected.insert(expected.end(), lengths.begin(), lengths.end());
  check_mask_names_queries(mask, expected);
  const int64_t rank = static_cast<int64_t>(expected.size());
  bool fits = mask.dim() <= rank;
  for (int64_t d = 1; fits && d <= mask.dim(); ++d) {
    const c10::SymInt size = mask.sym_size(-d), wanted = expected[rank - d];
    fits = holds(size.sym_eq(1).sym_or(size.sym_eq(wanted)));
  }
  TORCH_CHECK_VALUE(fits, "[attention] ", name, ": expected a shape that broadcasts to ",
                    c10::SymIntArrayRef(expected), ", got ", mask.sym_sizes());
}

void check_mask(const Call& call) {
  if (!call.options.mask) return;
  std::vector<c10::SymInt> lengths;
  for (const at::Tensor& key : call.keys) lengths.push_back(key.sym_size(2));
  check_tuple_mask(call, "mask", *call.options.mask, lengths);
}

void check_pair_masks(const Call& call) {
  if (!call.options.pair_masks) return;
  const at::TensorList masks = call.pair_masks();
  TORCH_CHECK_VALUE(masks.size() == call.keys.size(),
                    "[attention] pair_masks: expected one for each of the ", call.keys.size(),
                    " keys, got ", masks.size());
  for (size_t m = 0; m < masks.size(); ++m) {
    const std::string name = "pair_masks[" + std::to_string(m) + "]";
    check_tuple_mask(call, name.c_str(), masks[m], {call.keys[m].sym_size(2)});
    TORCH_CHECK_VALUE(masks[m].dim() >= 2, "[attention] ", name,
                      ": expected 2 dimensions [Tq, T] or more, got shape ", masks[m].sym_sizes());
  }
}

void check_sink(const Call& call, Normalizer normalizer) {
  const bool wanted = normalizer == Normalizer::softmax_sink;
  TORCH_CHECK_VALUE(wanted || !call.options.sink,
                    "[attention] sink: only normalizer='softmax_sink' takes one, got normalizer='",
                    call.options.normalizer, "'");
  if (!wanted) return;
  const c10::SymInt heads = call.query.sym_size(1);
  TORCH_CHECK_VALUE(call.options.sink.has_value(),
                    "[attention] sink: normalizer='softmax_sink' expects shape [", heads,
                    "], got none");
  const at::Tensor& sink = *call.options.sink;
  TORCH_CHECK_TYPE(is_floating(sink), "[attention] sink: expected a floating dtype, got ",
                   sink.scalar_type());
  check_device("sink", sink, call.query);
  TORCH_CHECK_VALUE(sink.dim() == 1 && holds(sink.sym_size(0).sym_eq(heads)),
                    "[attention] sink: expected shape [", heads, "], got ", sink.sym_sizes());
}

void check_alibi(const Call& call) {
  if (!call.options.alibi_slopes) return;
  const at::Tensor& slopes = *call.options.alibi_slopes;
  TORCH_CHECK_TYPE(is_floating(slopes), "[attention] alibi_slopes: expected a floating dtype, got ",
                   slopes.scalar_type());
  check_device("alibi_slopes", slopes, call.query);
  const c10::SymInt heads = call.query.sym_size(1);
  TORCH_CHECK_VALUE(slopes.dim() == 1 && holds(slopes.sym_size(0).sym_eq(heads)),
                    "[attention] alibi_slopes: expected shape [", heads, "], got ",
                    slopes.sym_sizes());
  TORCH_CHECK_VALUE(!(slopes.requires_grad() && at::GradMode::is_enabled()),
                    "[attention] alibi_slopes: expected slopes without a gradient, got some with "
                    "one; detach() them");
}

void check_dropout(const Options& options) {
  TORCH_CHECK_VALUE(options.dropout_p >= 0 && options.dropout_p < 1,
                    "[attention] dropout_p: expected at least 0 and less than 1, got ",
                    options.dropout_p);
  TORCH_CHECK_VALUE(options.dropout_p == 0 || options.seed,
                    "[attention] seed: expected an integer with dropout_p > 0, got none");
}

void check_query_positions(const Call& call) {
  if (!call.options.query_positions) return;
  const at::Tensor& positions = *call.options.query_positions;
  TORCH_CHECK_TYPE(positions.scalar_type() == at::kLong,
                   "[attention] query_positions: expected int64 or int32, got ",
                   positions.scalar_type());
  check_device("query_positions", positions, call.query);
  const c10::SymInt batch = call.query.sym_size(0), queries = call.query.sym_size(2);
  const bool fits = (positions.dim() == 1 ||
                     (positions.dim() == 2 && holds(positions.sym_size(1).sym_eq(queries)))) &&
                    holds(positions.sym_size(0).sym_eq(batch));
  TORCH_CHECK_VALUE(fits, "[attention] query_positions: expected shape [", batch, "] or [", batch,
                    ", ", queries, "], got ", positions.sym_sizes());
  TORCH_CHECK_VALUE(!call.options.cu_seqlens,
                    "[attention] query_positions: packed documents have their own positions, "
                    "expected query_positions or cu_seqlens");
}

void check_order_bias(const Call& call, Normalizer normalizer) {
  if (!call.options.order_bias) return;
  const at::Tensor& bias = *call.options.order_bias;
  TORCH_CHECK_TYPE(is_floating(bias), "[attention] order_bias: expected a floating dtype, got ",
                   bias.scalar_type());
  check_device("order_bias", bias, call.query);
  const c10::SymInt heads = call.query.sym_size(1);
  const auto order = static_cast<int64_t>(call.keys.size());
  TORCH_CHECK_VALUE(
      bias.dim() == 2 && bias.sym_size(0) == order && holds(bias.sym_size(1).sym_eq(heads)),
      "[attention] order_bias: expected shape [", order, ", ", heads, "], got ", bias.sym_sizes());
  TORCH_CHECK_VALUE(augmented(call),
                    "[attention] order_bias: tuples of one order have no other to be weighed "
                    "against, expected augment");
  TORCH_CHECK_VALUE(
      normalizer == Normalizer::softmax || normalizer == Normalizer::softmax_sink,
      "[attention] order_bias: expected normalizer 'softmax' or 'softmax_sink', got '",
      call.options.normalizer, "'");
}

}  // namespace

void check_scale(const char* operation, const char* name, const std::optional<double>& scale) {
  TORCH_CHECK_VALUE(!scale || std::isfinite(*scale), "[", operation, "] ", name,
                    ": expected a finite number, got ", *scale);
}

std::string softcap_fault(const std::optional<double>& softcap) {
  if (!softcap || (std::isfinite(*softcap) && *softcap > 0)) return {};
  return c10::str("softcap: expected a positive finite number, got ", *softcap);
}

void check_options(const Call& call) {
  const Names names = names_of(call.options);
  check_form(call, names.form);
  check_key_lengths(call);
  check_places_of_lengths(call, names.distinct);
  check_key_masks(call);
  check_documents(call);
  check_query_positions(call);
  check_mask(call);
  check_pair_masks(call);
  check_sink(call, names.normalizer);
  check_alibi(call);
  check_dropout(call.options);
  check_augment(call);
  check_order_bias(call, names.normalizer);
  check_scale("attention", "logit_scale", call.options.logit_scale);
  check_scale("attention", "output_scale", call.options.output_scale);
  const std::string fault = softcap_fault(call.options.softcap);
  TORCH_CHECK_VALUE(fault.empty(), "[attention] ", fault);
}

}  // namespace nsimplex::dense

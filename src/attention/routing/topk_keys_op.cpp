// Schema, checks, shapes and public functions of topk_keys.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_check.h"
#include "attention/routing/topk_keys_call.h"
#include "support/named_option.h"
#include "support/operator.h"
#include "support/plain_tensor.h"
#include "support/size_limits.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;
using dense::holds;

void check_tensors(const Call& call) {
  const Tensor &query = call.query, &key = call.key;
  for (const Tensor* tensor : {&query, &key}) {
    TORCH_CHECK_VALUE(tensor->dim() == 4, "[", call.function, "] ",
                      tensor == &query ? call.query_name : call.key_name,
                      ": expected 4 dimensions [batch, heads, length, channels], got shape ",
                      tensor->sym_sizes());
  }
  const at::ScalarType type = query.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf, "[",
      call.function, "] ", call.query_name,
      ": expected float32, float64, bfloat16 or float16, got ", type);
  TORCH_CHECK_TYPE(key.scalar_type() == type, "[", call.function, "] ", call.key_name,
                   ": expected the query's dtype ", type, ", got ", key.scalar_type());
  TORCH_CHECK_VALUE(key.device() == query.device(), "[", call.function, "] ", call.key_name,
                    ": expected the query's device ", query.device(), ", got ", key.device());
  TORCH_CHECK_VALUE(holds(key.sym_size(0).sym_eq(query.sym_size(0))), "[", call.function, "] ",
                    call.key_name, ": expected batch ", query.sym_size(0), ", got ",
                    key.sym_size(0));
  TORCH_CHECK_VALUE(
      holds(query.sym_size(3).sym_ge(1)) && holds(key.sym_size(3).sym_eq(query.sym_size(3))), "[",
      call.function, "] ", call.key_name, ": expected the query's channels ", query.sym_size(3),
      ", at least 1, got ", key.sym_size(3));
  TORCH_CHECK_VALUE(
      holds(key.sym_size(1).sym_ge(1)) && holds((query.sym_size(1) % key.sym_size(1)).sym_eq(0)) &&
          holds(query.sym_size(1).sym_ge(1)),
      "[", call.function, "] ", call.query_name, ": expected a number of heads divisible by the ",
      key.sym_size(1), " key heads, got ", query.sym_size(1));
}

void check_device(const Call& call, const char* name, const Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.device() == call.query.device(), "[", call.function, "] ", name,
                    ": expected the query's device ", call.query.device(), ", got ",
                    tensor.device());
}

// [B, H, Tq], floating.
void check_rows(const Call& call, const char* name, const Tensor& tensor) {
  check_device(call, name, tensor);
  TORCH_CHECK_TYPE(is_floating(tensor), "[", call.function, "] ", name,
                   ": expected floating numbers, got ", tensor.scalar_type());
  bool same = tensor.dim() == 3;
  for (int64_t d = 0; same && d < 3; ++d) {
    same = holds(tensor.sym_size(d).sym_eq(call.query.sym_size(d)));
  }
  TORCH_CHECK_VALUE(same, "[", call.function, "] ", name, ": expected shape ",
                    call.query.sym_sizes().slice(0, 3), ", got ", tensor.sym_sizes());
}

// [1 or B, Tq, ..]
bool of_queries(const Call& call, const Tensor& tensor) {
  return tensor.dim() == 3 && holds(tensor.sym_size(1).sym_eq(call.query.sym_size(2))) &&
         holds(tensor.sym_size(0).sym_eq(1).sym_or(
             tensor.sym_size(0).sym_eq(call.query.sym_size(0))));
}

void check_admissible(const Call& call) {
  if (call.key_lengths) {
    const Tensor& lengths = *call.key_lengths;
    check_device(call, "key_lengths", lengths);
    TORCH_CHECK_TYPE(lengths.scalar_type() == at::kLong, "[", call.function,
                     "] key_lengths: expected int64 or int32, got ", lengths.scalar_type());
    TORCH_CHECK_VALUE(
        lengths.dim() == 1 && holds(lengths.sym_size(0).sym_eq(call.query.sym_size(0))), "[",
        call.function, "] key_lengths: expected shape [", call.query.sym_size(0), "], got ",
        lengths.sym_sizes());
    dense::check_places(call.function, "key", std::nullopt, "causal", call.query.sym_size(2),
                        call.key.sym_size(2), !call.causal);
  }
  if (call.adjacency) {
    const Tensor& adjacency = *call.adjacency;
    check_device(call, "adjacency", adjacency);
    TORCH_CHECK_TYPE(adjacency.scalar_type() == at::kBool, "[", call.function,
                     "] adjacency: expected bool, got ", adjacency.scalar_type());
    TORCH_CHECK_VALUE(
        of_queries(call, adjacency) && holds(adjacency.sym_size(2).sym_eq(call.key.sym_size(2))),
        "[", call.function, "] adjacency: expected shape [1 or ", call.query.sym_size(0), ", ",
        call.query.sym_size(2), ", ", call.key.sym_size(2), "], got ", adjacency.sym_sizes());
  }
  if (call.candidates) {
    const Tensor& candidates = *call.candidates;
    check_device(call, "candidates", candidates);
    TORCH_CHECK_VALUE(!call.adjacency, "[", call.function,
                      "] candidates: given beside adjacency, expected one of them");
    TORCH_CHECK_TYPE(candidates.scalar_type() == at::kLong, "[", call.function,
                     "] candidates: expected int64, got ", candidates.scalar_type());
    TORCH_CHECK_VALUE(of_queries(call, candidates), "[", call.function,
                      "] candidates: expected shape [1 or ", call.query.sym_size(0), ", ",
                      call.query.sym_size(2), ", n], got ", candidates.sym_sizes());
  }
}

}  // namespace

void check(const Call& call) {
  check_tensors(call);
  TORCH_CHECK_VALUE(holds(call.k.sym_ge(1)), "[", call.function, "] k: expected at least 1, got ",
                    call.k);
  TORCH_CHECK_VALUE(holds(call.k.sym_le(kMostMade)), "[", call.function, "] k: expected at most ",
                    kMostMade, ", got ", call.k);
  named_option<IndexScores>(call.function, "scores", call.scores,
                            {.before = "", .quote = "'", .last = " or "});
  dense::check_scale(call.function, "scale", call.scale);
  if (call.weights) check_rows(call, "weights", *call.weights);
  if (call.lse) {
    TORCH_CHECK_VALUE(call.softmax(), "[", call.function,
                      "] lse: expected none with scores 'relu'");
    check_rows(call, "lse", *call.lse);
  }
  check_admissible(call);
}

void check_values(const Call& call) {
  const auto expect = [&](const char* name, const Tensor& values, int64_t least, int64_t most) {
    if (values.numel() == 0) return;
    const auto [low, high] = at::aminmax(values);
    TORCH_CHECK_VALUE(low.item<int64_t>() >= least && high.item<int64_t>() <= most, "[",
                      call.function, "] ", name, ": expected ", least, " to ", most, ", got ",
                      low.item<int64_t>(), " to ", high.item<int64_t>());
  };
  const int64_t length = call.key.size(2);
  if (call.key_lengths) expect("key_lengths", *call.key_lengths, 0, length);
  if (call.candidates) expect("candidates", *call.candidates, -1, length - 1);
}

}  // namespace nsimplex::routing

namespace nsimplex {
namespace routing {
namespace {

using at::Tensor;

#define NSIMPLEX_TOPK_SCHEMA \
  "(Tensor query, Tensor key, SymInt k, *" NSIMPLEX_SCHEMA_OF(NSIMPLEX_TOPK_OPTIONS) ") " \
  "-> (Tensor indices, Tensor scores)"

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("topk_keys" NSIMPLEX_TOPK_SCHEMA, {at::Tag::pt2_compliant_tag});
  m.def("topk_keys_reference" NSIMPLEX_TOPK_SCHEMA, {at::Tag::pt2_compliant_tag});
}

Output dispatch(const Call& call) {
  static const Operator<Output, Call> topk("nsimplex::topk_keys");
  return topk(call);
}

Output dispatch_reference(const Call& call) {
  static const Operator<Output, Call> topk("nsimplex::topk_keys_reference");
  return topk(call);
}

Output meta(const Call& call) {
  check(call);
  const std::array<c10::SymInt, 3> sizes{call.query.sym_size(0), call.query.sym_size(2), call.k};
  const at::TensorOptions options = call.query.options();
  return {at::empty_symint(sizes, options.dtype(at::kLong)),
          at::empty_symint(sizes, options.dtype(dense::accumulate_type(call.query.scalar_type())))};
}

// A selection has no derivative: nothing is recorded, and the results require no gradient.
template <Output (*below)(const Call&)>
Output autograd(const Call& call) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("topk_keys", TORCH_FN(flat<&reference>));
  m.impl("topk_keys_reference", TORCH_FN(flat<&reference>));
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("topk_keys", TORCH_FN(flat<&meta>));
  m.impl("topk_keys_reference", TORCH_FN(flat<&meta>));
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("topk_keys", TORCH_FN(flat<&autograd<&dispatch>>));
  m.impl("topk_keys_reference", TORCH_FN(flat<&autograd<&dispatch_reference>>));
}

template <Output (*function)(const Call&)>
TopkKeys call_with(const Tensor& query, const Tensor& key, int64_t k, const TopkOptions& options) {
  OptionalTensor adjacency = options.adjacency, candidates = options.candidates;
  if (adjacency && adjacency->layout() == at::kSparseCsr) {
    TORCH_CHECK_VALUE(!candidates,
                      "[topk_keys] candidates: given beside adjacency, expected one of them");
    candidates = neighbours(*adjacency, /*self_loops=*/false);
    adjacency.reset();
  }
  if (adjacency && adjacency->dim() == 2) adjacency = adjacency->unsqueeze(0);
  if (candidates && candidates->dim() == 2) candidates = candidates->unsqueeze(0);
  auto [indices, scores] =
      function({query, key, k, options.weights, name_of(options.scores), options.causal,
                options.scale, options.lse, options.key_lengths, adjacency, candidates});
  return {std::move(indices), std::move(scores)};
}

}  // namespace

Tensor pair_lse(const Call& call) {
  const at::NoGradGuard no_grad;
  AttentionOptions options{.causal = call.causal, .key_lengths = call.key_lengths};
  const at::ScalarType type = dense::accumulate_type(call.query.scalar_type());
  if (call.scale) options.scale = Scale{*call.scale, 1.0};
  if (call.adjacency) options.mask = call.adjacency->unsqueeze(1);
  const Tensor key = call.key.to(type);
  // Values of one channel, because only lse is used.
  const Tensor values = at::zeros({1}, key.options())
                            .expand_symint({key.sym_size(0), key.sym_size(1), key.sym_size(2), 1});
  return attention(call.query.to(type), {key}, {values}, options).lse;
}

}  // namespace routing

TopkKeys topk_keys(const at::Tensor& query, const at::Tensor& key, int64_t k,
                   const TopkOptions& options) {
  return routing::call_with<&routing::dispatch>(query, key, k, options);
}

TopkKeys topk_keys_reference(const at::Tensor& query, const at::Tensor& key, int64_t k,
                             const TopkOptions& options) {
  return routing::call_with<&routing::dispatch_reference>(query, key, k, options);
}

}  // namespace nsimplex

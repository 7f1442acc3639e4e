// Translates the arguments of attention operators into settings, sizes and memory layouts.

#include "attention/common/attention_arguments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "support/named_option.h"
#include "support/plain_tensor.h"
#include "support/transforms.h"

namespace nsimplex::dense {
Names names_of(const Options& options) {
  return {named_option<Form>("attention", "form", options.form),
          named_option<Reduce>("attention", "reduce", options.reduce),
          named_option<Normalizer>("attention", "normalizer", options.normalizer),
          named_option<Distinct>("attention", "distinct", options.distinct)};
}

namespace {

// An empty list is like none.
template <class T>
bool is_set(const T& value, const T& initial) {
  if constexpr (requires { value->empty(); }) {
    return value.has_value() && !value->empty();
  } else if constexpr (requires { value.has_value(); }) {
    return value.has_value();
  } else {
    return value != initial;
  }
}

}  // namespace

#define NSIMPLEX_REFUSE_OPTION(type, name, initial, schema, paths) \
  if (((paths) & path) == 0 && is_set(options.name, initially.name)) return #name;

const char* unhandled(const Options& options, Path path) {
  const Options initially;
  NSIMPLEX_ATTENTION_OPTIONS(NSIMPLEX_REFUSE_OPTION)
  return nullptr;
}

void require_handled(const char* function, const Options& options, Path path) {
  const char* const name = unhandled(options, path);
  TORCH_CHECK_VALUE(name == nullptr, "[", function, "] ", name ? name : "",
                    ": expected its default, got another value, which ", function,
                    " does not take");
}

Settings settings_of(const Call& call) {
  const Options& options = call.options;
  Settings settings;
  settings.order = static_cast<int>(call.keys.size());
  const Names names = names_of(options);
  settings.form = names.form;
  settings.reduce = names.reduce;
  settings.normalizer = names.normalizer;
  settings.distinct = names.distinct;
  settings.softcap = options.softcap.value_or(0.0);
  settings.dropout_p = options.dropout_p;
  if (options.seed) settings.seed = options.seed->guard_int(__FILE__, __LINE__);
  settings.scale.logit = options.logit_scale.value_or(Scale::standard(call.query.size(3)).logit);
  settings.scale.output = options.output_scale.value_or(1.0);
  for (int m = 0; m < settings.order; ++m) {
    kernels::Visibility& visible = settings.visible[m];
    visible.length = call.keys[m].size(2);
    visible.offset = visible.length - call.query.size(2);
    visible.causal = options.causal;
    if (options.window) {
      // A window wider than any distance is reduced to it, so that positions plus windows cannot
      // overflow.
      const bool free = options.query_positions.has_value();
      const int64_t left = free ? 2 * kMostPosition : std::max<int64_t>(visible.length, 1),
                    right = free ? 2 * kMostPosition : call.query.size(2);
      visible.left = std::min((*options.window)[2 * m].guard_int(__FILE__, __LINE__), left);
      visible.right = std::min((*options.window)[2 * m + 1].guard_int(__FILE__, __LINE__), right);
    }
  }
  return settings;
}

at::Tensor accumulated(const at::Tensor& tensor, at::ScalarType type) {
  if (tensor.scalar_type() != at::kDouble || type == at::kDouble) return tensor.to(type);
  constexpr double kMost = std::numeric_limits<float>::max();
  return at::where(tensor.isinf(), tensor, tensor.clamp(-kMost, kMost)).to(type);
}

void require_addressable(const char* operation, const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(is_addressable(tensor), "[", operation, "] ", argument,
                    ": expected tensors of at most 2^40 numbers, got shape ", tensor.sizes());
}

void require_addressable(const char* operation, const char* list, at::TensorList tensors) {
  for (size_t m = 0; m < tensors.size(); ++m) {
    TORCH_CHECK_VALUE(is_addressable(tensors[m]), "[", operation, "] ", list, "[", m,
                      "]: expected tensors of at most 2^40 numbers, got shape ",
                      tensors[m].sizes());
  }
}

at::Tensor valid_keys(const Call& call) {
  if (!call.options.key_lengths) return {};
  const at::Tensor lengths = call.options.key_lengths->expand(
      {static_cast<int64_t>(call.keys.size()), call.query.size(0)});
  at::Tensor valid = at::where(lengths.gt(0).all(0), lengths, 0).contiguous();
  // The lengths were checked, but their tensor may have changed since then. The kernel relies on
  // them, so they are limited here.
  for (size_t m = 0; m < call.keys.size(); ++m) {
    valid.select(0, static_cast<int64_t>(m)).clamp_(0, call.keys[m].size(2));
  }
  return valid;
}

at::Tensor document_bounds(const Call& call) {
  const at::Tensor bounds = call.options.cu_seqlens->cpu().contiguous();
  const int64_t* const bound = bounds.const_data_ptr<int64_t>();
  const int64_t length = call.query.size(2);
  at::Tensor documents = at::zeros({2, length}, bounds.options());
  int64_t* const begin = documents.mutable_data_ptr<int64_t>();
  for (int64_t d = 0; d + 1 < bounds.size(0); ++d) {
    // They were checked, but their tensor may have changed since then. Each is read once and
    // limited.
    const int64_t first = std::clamp<int64_t>(bound[d], 0, length);
    const int64_t last = std::clamp<int64_t>(bound[d + 1], first, length);
    std::fill(begin + first, begin + last, first);
    std::fill(begin + length + first, begin + length + last, last);
  }
  return documents;
}

at::Tensor positions_of_queries(const Call& call) {
  const at::Tensor& given = *call.options.query_positions;
  const int64_t queries = call.query.size(2);
  if (given.dim() == 2) return given.expand({call.query.size(0), queries});
  return given.unsqueeze(1) + at::arange(queries, given.options());
}

at::Tensor rising_positions(const Call& call) {
  // They were checked, but their tensor may have changed since then. The copy is made ascending.
  return std::get<0>(
             at::cummax(positions_of_queries(call).cpu().clamp(-kMostPosition, kMostPosition), 1))
      .contiguous();
}

namespace {

// The numbers of an option, where they can be read: a traced graph has none. Rows that vmap maps
// over come first.
std::optional<at::Tensor> numbers_of(const OptionalTensor& option) {
  if (!option || !has_numbers(*option)) return std::nullopt;
  const BelowTransforms below;
  const at::Tensor inside = below_transforms(*option);
  return (inside.is_cpu() ? inside : inside.cpu()).contiguous();
}

void check_key_length_values(const Call& call) {
  const std::optional<at::Tensor> lengths = numbers_of(call.options.key_lengths);
  if (!lengths) return;
  const int64_t batch = call.query.size(0), order = static_cast<int64_t>(call.keys.size());
  const bool per_axis = call.options.key_lengths->dim() == 2;
  const int64_t* const data = lengths->const_data_ptr<int64_t>();
  for (int64_t i = 0; i < lengths->numel(); ++i) {
    for (int64_t m = 0; m < order; ++m) {
      if (per_axis && m != i / batch % order) continue;
      TORCH_CHECK_VALUE(data[i] >= 0 && data[i] <= call.keys[m].size(2),
                        "[attention] key_lengths: axis ", m, ", batch entry ", i % batch,
                        ": expected 0 to ", call.keys[m].size(2), ", got ", data[i]);
    }
  }
}

void check_document_values(const Call& call) {
  const std::optional<at::Tensor> bounds = numbers_of(call.options.cu_seqlens);
  if (!bounds) return;
  const int64_t count = bounds->size(-1), length = call.query.size(2);
  const int64_t* data = bounds->const_data_ptr<int64_t>();
  for (int64_t row = 0; row < bounds->numel() / count; ++row, data += count) {
    TORCH_CHECK_VALUE(data[0] == 0, "[attention] cu_seqlens: expected to start at 0, got ",
                      data[0]);
    for (int64_t i = 1; i < count; ++i) {
      TORCH_CHECK_VALUE(data[i] >= data[i - 1],
                        "[attention] cu_seqlens: expected not to decrease, got ", data[i - 1],
                        " before ", data[i], " at ", i);
    }
    TORCH_CHECK_VALUE(data[count - 1] == length,
                      "[attention] cu_seqlens: expected to end at the length ", length, ", got ",
                      data[count - 1]);
  }
}

void check_query_position_values(const Call& call) {
  const std::optional<at::Tensor> given = numbers_of(call.options.query_positions);
  if (!given) return;
  // One number per entry is the position of its first query, which the others follow.
  const int64_t batch = call.query.size(0), queries = call.query.size(2);
  const bool first_only = call.options.query_positions->dim() == 1;
  const int64_t more = first_only ? std::max<int64_t>(queries, 1) - 1 : 0;
  const int64_t* const data = given->const_data_ptr<int64_t>();
  for (int64_t i = 0; i < given->numel(); ++i) {
    const int64_t entry = (first_only ? i : i / queries) % batch;
    const bool inside = data[i] >= -kMostPosition && data[i] <= kMostPosition;
    TORCH_CHECK_VALUE(inside && data[i] <= kMostPosition - more,
                      "[attention] query_positions: expected -2^53 to 2^53, got ",
                      data[i] + (inside ? more : 0), " in batch entry ", entry);
    TORCH_CHECK_VALUE(first_only || i % queries == 0 || data[i] >= data[i - 1],
                      "[attention] query_positions: expected numbers that do not fall from one "
                      "query to the next, got ",
                      data[i - 1], " before ", data[i], " in batch entry ", entry);
  }
}

}  // namespace

void check_values(const Call& call) {
  check_key_length_values(call);
  check_document_values(call);
  check_query_position_values(call);
}

std::array<c10::SymInt, 4> output_sizes(const Call& call) {
  return {call.query.sym_size(0), call.query.sym_size(1), call.query.sym_size(2),
          call.values[0].sym_size(3)};
}

bool heads_inside(const at::Tensor& tensor) {
  return TORCH_GUARD_OR_FALSE(tensor.sym_stride(1).sym_lt(tensor.sym_stride(2)));
}

at::Tensor empty_in_order(const at::Tensor& like, c10::SymIntArrayRef sizes,
                          const at::TensorOptions& options) {
  if (!heads_inside(like)) return at::empty_symint(sizes, options);
  const c10::SymInt swapped[] = {sizes[0], sizes[2], sizes[1], sizes[3]};
  return at::empty_symint(swapped, options).transpose(1, 2);
}

at::Tensor in_order_of(const at::Tensor& like, const at::Tensor& result) {
  const at::Tensor typed = result.to(like.scalar_type());
  return heads_inside(like) ? typed.transpose(1, 2).contiguous().transpose(1, 2)
                            : typed.contiguous();
}

std::optional<c10::SymInt> seed_of(const AttentionOptions& options) {
  if (options.seed) return *options.seed;
  if (options.dropout_p == 0.0) return std::nullopt;
  return at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
}

}  // namespace nsimplex::dense

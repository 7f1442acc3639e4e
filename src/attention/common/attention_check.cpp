// The checks of the operator `attention`: tensors, windows and the arguments of its backward
// operators.

#include "attention/common/attention_check.h"

#include <ATen/core/List.h>
#include <c10/util/StringUtil.h>

#include "support/plain_tensor.h"

namespace nsimplex::dense {
namespace {

void check_axis(const char* operation, const char* name, size_t axis, const at::Tensor& tensor,
                const at::Tensor& query, const at::Tensor& first_key) {
  TORCH_CHECK_VALUE(tensor.dim() == 4, "[", operation, "] ", name, "[", axis,
                    "]: expected 4 dimensions [batch, heads, length, channels], got shape ",
                    tensor.sym_sizes());
  TORCH_CHECK_TYPE(tensor.scalar_type() == query.scalar_type(), "[", operation, "] ", name, "[",
                   axis, "]: expected the query's dtype ", query.scalar_type(), ", got ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == query.device(), "[", operation, "] ", name, "[", axis,
                    "]: expected the query's device ", query.device(), ", got ", tensor.device());
  const auto expect = [&](const char* what, int dimension, const c10::SymInt& expected) {
    TORCH_CHECK_VALUE(holds(tensor.sym_size(dimension).sym_eq(expected)), "[", operation, "] ",
                      name, "[", axis, "]: expected ", what, " ", expected, ", got ",
                      tensor.sym_size(dimension), " (shape ", tensor.sym_sizes(), ")");
  };
  expect("batch", 0, query.sym_size(0));
  expect("heads", 1, first_key.sym_size(1));
}

void check_window(const Call& call) {
  if (!call.options.window) return;
  const c10::SymIntArrayRef window = *call.options.window;
  const size_t order = call.keys.size();
  TORCH_CHECK_VALUE(window.size() == 2 * order, "[attention] window: expected ", 2 * order,
                    " numbers (left, right for each of ", order, " axes), got ", window.size());
  for (size_t m = 0; m < order; ++m) {
    const c10::SymInt &left = window[2 * m], &right = window[2 * m + 1];
    TORCH_CHECK_VALUE(
        holds(left.sym_ge(1).sym_or(left.sym_eq(-1))), "[attention] window[", m,
        "]: left counts the query's own position and is at least 1, or -1 for unbounded; got ",
        left);
    TORCH_CHECK_VALUE(holds(right.sym_ge(-1)), "[attention] window[", m,
                      "]: right is at least 0, or -1 for unbounded; got ", right);
  }
}

}  // namespace

void check_tensors(const char* operation, const at::Tensor& query, at::TensorList keys,
                   at::TensorList values) {
  const size_t order = keys.size();
  TORCH_CHECK_VALUE(order >= 1 && order <= kernels::kMaxOrder, "[", operation,
                    "] keys: expected 1 to ", kernels::kMaxOrder, " key tensors, got ", order);
  TORCH_CHECK_VALUE(values.size() == order, "[", operation,
                    "] values: expected one for each of the ", order, " keys, got ", values.size());
  TORCH_CHECK_VALUE(query.dim() == 4, "[", operation,
                    "] query: expected 4 dimensions [batch, heads, length, channels], got "
                    "shape ",
                    query.sym_sizes());
  const at::ScalarType type = query.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf, "[",
      operation, "] query: expected float32, float64, bfloat16 or float16, got ", type);
  TORCH_CHECK_VALUE(holds(query.sym_size(3).sym_ge(1)), "[", operation,
                    "] query: expected head dim of at least 1, got shape ", query.sym_sizes());
  for (size_t m = 0; m < order; ++m) {
    const at::Tensor &key = keys[m], &value = values[m];
    check_axis(operation, "keys", m, key, query, keys[0]);
    check_axis(operation, "values", m, value, query, keys[0]);
    TORCH_CHECK_VALUE(holds(key.sym_size(3).sym_eq(query.sym_size(3))), "[", operation, "] keys[",
                      m, "]: expected head dim ", query.sym_size(3), ", got ", key.sym_size(3),
                      " (shape ", key.sym_sizes(), ")");
    TORCH_CHECK_VALUE(holds(value.sym_size(2).sym_eq(key.sym_size(2))), "[", operation, "] values[",
                      m, "]: expected length ", key.sym_size(2), " of keys[", m, "], got ",
                      value.sym_size(2), " (shape ", value.sym_sizes(), ")");
    TORCH_CHECK_VALUE(
        holds(value.sym_size(3).sym_eq(values[0].sym_size(3)).sym_and(value.sym_size(3).sym_ge(1))),
        "[", operation, "] values[", m, "]: expected the value dim of values[0], at least 1, got ",
        value.sym_size(3), " (shape ", value.sym_sizes(), ")");
  }
  const c10::SymInt heads = query.sym_size(1), kv_heads = keys[0].sym_size(1);
  TORCH_CHECK_VALUE(holds(kv_heads.sym_ge(1)) && holds((heads % kv_heads).sym_eq(0)), "[",
                    operation, "] query: expected a number of heads divisible by the ", kv_heads,
                    " key heads, got ", heads);
}

void check_places(const char* operation, const char* keys, std::optional<int64_t> axis,
                  const char* by, const c10::SymInt& queries, const c10::SymInt& length,
                  const c10::SymBool& everywhere) {
  const std::string name = axis ? c10::str(keys, "[", *axis, "]") : std::string(keys);
  TORCH_CHECK_VALUE(holds(length.sym_eq(queries).sym_or(everywhere)), "[", operation,
                    "] key_lengths: with ", by, ", expected as many keys as queries, got ", length,
                    " in ", name, " for ", queries,
                    ": queries align to the end of the axis, padding included; slice keys and "
                    "values to their length, pad in front with key_masks, or, in attention, give "
                    "query_positions");
}

void check(const Call& call) {
  check_tensors("attention", call.query, call.keys, call.values);
  check_window(call);
  check_options(call);
}

void expect_shape(const char* operation, const char* name, const at::Tensor& tensor,
                  c10::SymIntArrayRef sizes) {
  TORCH_CHECK_TYPE(is_floating(tensor), "[", operation, "] ", name,
                   ": expected floating numbers, got ", tensor.scalar_type());
  bool same = tensor.dim() == static_cast<int64_t>(sizes.size());
  for (size_t d = 0; same && d < sizes.size(); ++d) {
    same = holds(tensor.sym_size(static_cast<int64_t>(d)).sym_eq(sizes[d]));
  }
  TORCH_CHECK_VALUE(same, "[", operation, "] ", name, ": expected shape ", sizes, ", got ",
                    tensor.sym_sizes());
}

namespace {

void check_results(const char* operation, const BackwardCall& call) {
  check(call.forward);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call.forward);
  const auto expect = [&](const char* name, const at::Tensor& tensor, size_t dimensions) {
    expect_shape(operation, name, tensor, {sizes.data(), dimensions});
  };
  expect("out", call.out, 4);
  expect("grad_out", call.grad_out, 4);
  expect("lse", call.lse, 3);
  if (call.grad_lse) expect("grad_lse", *call.grad_lse, 3);
}

}  // namespace

void check(const PairMasksBackwardCall& call) {
  constexpr const char* operation = "attention_pair_masks_backward";
  check_results(operation, call);
  const at::TensorList masks = call.forward.pair_masks();
  TORCH_CHECK_VALUE(call.wanted.size() == masks.size(), "[", operation,
                    "] output_mask: expected one entry for each of the ", masks.size(),
                    " pair_masks, got ", call.wanted.size());
  for (size_t m = 0; m < masks.size(); ++m) {
    TORCH_CHECK_VALUE(!call.wanted[m] || is_floating(masks[m]), "[", operation, "] output_mask[", m,
                      "]: pair_masks[", m, "] is not floating, so it has no gradient");
  }
}

void check(const BackwardCall& call) {
  check_results("attention_backward", call);
  const size_t inputs = 3 + 2 * call.forward.keys.size();
  TORCH_CHECK_VALUE(call.wanted.size() == inputs, "[attention_backward] output_mask: expected ",
                    inputs, " entries (query, keys, values, mask, sink), got ", call.wanted.size());
  const auto differentiable = [&](size_t entry, const OptionalTensor& input, const char* name) {
    TORCH_CHECK_VALUE(!call.wanted[entry] || (input && input->is_floating_point()),
                      "[attention_backward] output_mask[", entry, "]: the call has no floating ",
                      name, " to differentiate by");
  };
  differentiable(inputs - 2, call.forward.options.mask, "mask");
  differentiable(inputs - 1, call.forward.options.sink, "sink");
}

}  // namespace nsimplex::dense

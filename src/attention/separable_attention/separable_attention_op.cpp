// Schema, checks, shapes and public functions of the separable operator.

#include <ATen/ops/empty.h>
#include <c10/core/SymBool.h>
#include <c10/util/StringUtil.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_check.h"
#include "attention/separable_attention/separable_attention_call.h"
#include "support/operator.h"

namespace nsimplex {
namespace separable {
Output dispatch(const Call& call) {
  static const Operator<Output, Call> attention("nsimplex::separable_attention");
  return attention(call);
}

Output dispatch_reference(const Call& call) {
  static const Operator<Output, Call> reference("nsimplex::separable_attention_reference");
  return reference(call);
}

Gradients dispatch(const BackwardCall& call) {
  static const Operator<Gradients, BackwardCall> backward("nsimplex::separable_attention_backward");
  return backward(call);
}

namespace {

Output meta_forward(const Call& call) {
  check(call);
  const at::Tensor& query = call.query;
  const c10::SymInt sizes[] = {query.sym_size(0), query.sym_size(1), query.sym_size(2),
                               call.values[0].sym_size(3)};
  const at::ScalarType wide = dense::accumulate_type(query.scalar_type());
  return {dense::empty_in_order(query, sizes, query.options()),
          at::empty_symint(c10::SymIntArrayRef(sizes, 3), query.options().dtype(wide))};
}

Gradients meta_backward(const BackwardCall& call) {
  check(call);
  const auto like = [](const at::Tensor& input) {
    return dense::empty_in_order(input, input.sym_sizes(), input.options());
  };
  Gradients gradients{like(call.forward.query), {}, {}};
  for (const at::Tensor& key : call.forward.keys) std::get<1>(gradients).push_back(like(key));
  for (const at::Tensor& value : call.forward.values) std::get<2>(gradients).push_back(like(value));
  return gradients;
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "separable_attention(Tensor query, Tensor[] keys, Tensor[] "
      "values, *" NSIMPLEX_SEPARABLE_SCHEMA ") -> (Tensor out, Tensor normalizer)",
      tags);
  m.def(
      "separable_attention_reference(Tensor query, Tensor[] keys, Tensor[] "
      "values, *" NSIMPLEX_SEPARABLE_SCHEMA ") -> (Tensor out, Tensor normalizer)",
      tags);
  m.def(
      "separable_attention_backward(Tensor query, Tensor[] keys, Tensor[] values, Tensor out, "
      "Tensor normalizer, Tensor grad_out, Tensor? grad_normalizer, *" NSIMPLEX_SEPARABLE_SCHEMA
      ") -> (Tensor grad_query, Tensor[] grad_keys, Tensor[] grad_values)",
      tags);
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("separable_attention", TORCH_FN(flat<&meta_forward>));
  m.impl("separable_attention_reference", TORCH_FN(flat<&meta_forward>));
  m.impl("separable_attention_backward", TORCH_FN(flat<&meta_backward>));
}

template <class Function>
SeparableOutput with_call(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                          const SeparableOptions& options, Function&& function) {
  const dense::HeadsFirst tensors(options.layout, query, keys, values);
  const size_t given = options.window.size();
  TORCH_CHECK_VALUE(given <= 1 || given == keys.size(),
                    "[separable_attention] window: expected one for all axes or ", keys.size(),
                    ", got ", given);
  std::vector<c10::SymInt> window;
  for (size_t m = 0; given > 0 && m < keys.size(); ++m) {
    const Window& each = options.window[given == 1 ? 0 : m];
    window.insert(window.end(), {each.left, each.right});
  }
  at::OptionalSymIntArrayRef flat_window;
  if (given > 0) flat_window = c10::SymIntArrayRef(window);
  auto [out, normalizer] =
      function(Call{tensors.query, tensors.keys, tensors.values, options.causal, flat_window});
  return {dense::swap_heads(options.layout, out), std::move(normalizer)};
}

}  // namespace
}  // namespace separable

SeparableOutput separable_attention(const at::Tensor& query, at::TensorList keys,
                                    at::TensorList values, const SeparableOptions& options) {
  return separable::with_call(query, keys, values, options, [](const separable::Call& call) {
    return separable::dispatch(call);
  });
}

SeparableOutput separable_attention_reference(const at::Tensor& query, at::TensorList keys,
                                              at::TensorList values,
                                              const SeparableOptions& options) {
  return separable::with_call(query, keys, values, options, [](const separable::Call& call) {
    return separable::dispatch_reference(call);
  });
}

}  // namespace nsimplex

namespace nsimplex::separable {
namespace {

using at::Tensor;

constexpr char kName[] = "[separable_attention] ";

bool holds(const c10::SymBool& condition) { return condition.expect_true(__FILE__, __LINE__); }

// Compares sizes, dtype and device of a tensor with those that follow from the other arguments.
void check_tensor(const std::string& name, const Tensor& tensor, const Tensor& query,
                  std::initializer_list<std::pair<const char*, c10::SymInt>> expected) {
  TORCH_CHECK_VALUE(
      tensor.dim() == 4, kName, name,
      ": expected 4 dimensions [batch, heads, length, features or channels], got shape ",
      tensor.sym_sizes());
  TORCH_CHECK_TYPE(tensor.scalar_type() == query.scalar_type(), kName, name,
                   ": expected the query's dtype ", query.scalar_type(), ", got ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == query.device(), kName, name,
                    ": expected the query's device ", query.device(), ", got ", tensor.device());
  int64_t dimension = 0;
  for (const auto& [what, size] : expected) {
    TORCH_CHECK_VALUE(holds(tensor.sym_size(dimension).sym_eq(size)), kName, name, ": expected ",
                      what, " ", size, ", got ", tensor.sym_size(dimension), " (shape ",
                      tensor.sym_sizes(), ")");
    ++dimension;
  }
}

void check_window(const Call& call) {
  const size_t order = call.keys.size();
  TORCH_CHECK_VALUE(call.window->size() == 2 * order, kName, "window: expected ", 2 * order,
                    " numbers (left, right for each of ", order, " axes), got ",
                    call.window->size());
  for (size_t m = 0; m < order; ++m) {
    const c10::SymInt &left = (*call.window)[2 * m], &right = (*call.window)[2 * m + 1];
    TORCH_CHECK_VALUE(holds(left.sym_ge(1).sym_or(left.sym_eq(-1))), kName, "window[", m,
                      "]: left counts the query's own position: expected at least 1, or -1 for "
                      "unbounded, got ",
                      left);
    TORCH_CHECK_VALUE(holds(right.sym_ge(-1)), kName, "window[", m,
                      "]: expected right of at least 0, or -1 for unbounded, got ", right);
  }
}

}  // namespace

void check(const Call& call) {
  const Tensor& query = call.query;
  const size_t order = call.keys.size();
  TORCH_CHECK_VALUE(order >= 1 && order <= kernels::kMaxOrder, kName, "keys: expected 1 to ",
                    kernels::kMaxOrder, " tensors, got ", order);
  TORCH_CHECK_VALUE(call.values.size() == order, kName, "values: expected one for each of the ",
                    order, " keys, got ", call.values.size());
  const at::ScalarType type = query.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
      kName, "query: expected float32, float64, bfloat16 or float16, got ", type);
  check_tensor("query", query, query, {});
  TORCH_CHECK_VALUE(holds(query.sym_size(3).sym_ge(1)), kName,
                    "query: expected at least one feature, got shape ", query.sym_sizes());
  for (size_t m = 0; m < order; ++m) {
    const Tensor &key = call.keys[m], &value = call.values[m], &first = call.values[0];
    const std::string key_name = c10::str("keys[", m, "]"),
                      value_name = c10::str("values[", m, "]");
    check_tensor(key_name, key, query, {});
    check_tensor(value_name, value, query, {});
    const c10::SymInt batch = query.sym_size(0), heads = call.keys[0].sym_size(1);
    check_tensor(key_name, key, query,
                 {{"batch", batch},
                  {"heads", heads},
                  {"length", key.sym_size(2)},
                  {"features", query.sym_size(3)}});
    check_tensor(value_name, value, query,
                 {{"batch", batch},
                  {"heads", heads},
                  {"length", key.sym_size(2)},
                  {"value dim", first.sym_size(3)}});
  }
  TORCH_CHECK_VALUE(holds(call.values[0].sym_size(3).sym_ge(1)), kName,
                    "values[0]: expected a value dim of at least 1, got shape ",
                    call.values[0].sym_sizes());
  const c10::SymInt heads = query.sym_size(1), kv_heads = call.keys[0].sym_size(1);
  TORCH_CHECK_VALUE(holds(kv_heads.sym_ge(1)) && holds((heads % kv_heads).sym_eq(0)), kName,
                    "query: expected a number of heads divisible by the ", kv_heads,
                    " key heads, got ", heads);
  if (call.window) check_window(call);
}

void check(const BackwardCall& call) {
  check(call.forward);
  const Tensor& query = call.forward.query;
  const std::vector<c10::SymInt> sizes{query.sym_size(0), query.sym_size(1), query.sym_size(2),
                                       call.forward.values[0].sym_size(3)};
  const auto expect = [&](const char* name, const Tensor& tensor, size_t dimensions) {
    dense::expect_shape("separable_attention_backward", name, tensor, {sizes.data(), dimensions});
  };
  expect("out", call.out, 4);
  expect("grad_out", call.grad_out, 4);
  expect("normalizer", call.normalizer, 3);
  if (call.grad_normalizer) expect("grad_normalizer", *call.grad_normalizer, 3);
}

kernels::Visibility visibility_of(const Call& call, size_t axis) {
  const int64_t length = call.keys[axis].size(2), queries = call.query.size(2);
  kernels::Visibility visible{length, length - queries, -1, -1, call.causal};
  if (call.window) {
    const int64_t left = (*call.window)[2 * axis].guard_int(__FILE__, __LINE__);
    const int64_t right = (*call.window)[2 * axis + 1].guard_int(__FILE__, __LINE__);
    // A limit without effect counts as unbounded. This is faster, and positions plus windows then
    // cannot overflow.
    if (left < length) visible.left = left;
    if (right < queries) visible.right = right;
  }
  return visible;
}

}  // namespace nsimplex::separable

// Schema, shapes and public functions of the separable operator.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "attention/dense/dense_arguments.h"
#include "attention/dense/dense_layout.h"
#include "attention/dispatch.h"
#include "attention/separable/separable_call.h"

#define NSIMPLEX_SEPARABLE_OPTIONS "*, bool causal=False, SymInt[]? window=None"

namespace nsimplex {
namespace separable {
namespace {

using ForwardFunction = decltype(flat<&reference_forward>);
using BackwardFunction = decltype(flat_backward<&reference_backward>);

Output call_operator(const c10::TypedOperatorHandle<ForwardFunction>& op, const Call& call) {
  return op.call(call.query, call.keys, call.values, call.causal, call.window);
}

}  // namespace

Output dispatch(const Call& call) {
  static const auto op = find_operator<ForwardFunction>("nsimplex::separable_attention");
  return call_operator(op, call);
}

Output dispatch_reference(const Call& call) {
  static const auto op = find_operator<ForwardFunction>("nsimplex::separable_attention_reference");
  return call_operator(op, call);
}

Gradients dispatch(const BackwardCall& call) {
  static const auto op = find_operator<BackwardFunction>("nsimplex::separable_attention_backward");
  const Call& forward = call.forward;
  return op.call(forward.query, forward.keys, forward.values, call.out, call.normalizer,
                 call.grad_out, call.grad_normalizer, forward.causal, forward.window);
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
      "values, " NSIMPLEX_SEPARABLE_OPTIONS ") -> (Tensor out, Tensor normalizer)",
      tags);
  m.def(
      "separable_attention_reference(Tensor query, Tensor[] keys, Tensor[] "
      "values, " NSIMPLEX_SEPARABLE_OPTIONS ") -> (Tensor out, Tensor normalizer)",
      tags);
  m.def(
      "separable_attention_backward(Tensor query, Tensor[] keys, Tensor[] values, Tensor out, "
      "Tensor normalizer, Tensor grad_out, Tensor? grad_normalizer, " NSIMPLEX_SEPARABLE_OPTIONS
      ") -> (Tensor grad_query, Tensor[] grad_keys, Tensor[] grad_values)",
      tags);
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("separable_attention", TORCH_FN(flat<&meta_forward>));
  m.impl("separable_attention_reference", TORCH_FN(flat<&meta_forward>));
  m.impl("separable_attention_backward", TORCH_FN(flat_backward<&meta_backward>));
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

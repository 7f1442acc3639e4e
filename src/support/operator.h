#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>

// What every operator with an autograd node decides above it, the same for all of them. A call says
// with any_input(predicate) whether a tensor that it may be differentiated by satisfies a
// predicate, a call of the backward operator with any_tensor(predicate) whether any of its tensors
// does.

namespace nsimplex {

inline bool requires_grad(const at::Tensor& tensor) { return tensor.requires_grad(); }
inline bool has_tangent(const at::Tensor& tensor) { return tensor._fw_grad(/*level=*/0).defined(); }

/// Whether a call must be made of ATen calls: a C++ autograd function knows neither functorch's
/// transforms nor forward mode.
template <class Call>
bool needs_composite(const Call& call) {
  return at::functorch::maybeCurrentDynamicLayer().has_value() || call.any_input(has_tangent);
}

/// The forward operator above autograd: `composite` is made of ATen calls, `below` computes and
/// records nothing, `record` applies the autograd function.
template <class Call, class Composite, class Below, class Record>
auto autograd_forward(const Call& call, Composite&& composite, Below&& below, Record&& record) {
  if (needs_composite(call)) return composite(call);
  if (at::GradMode::is_enabled() && call.any_input(requires_grad)) return record(call);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

/// The backward operator above autograd. A gradient that is differentiated again is `composite`'s,
/// recorded operation by operation.
template <class BackwardCall, class Composite, class Below>
auto autograd_backward(const BackwardCall& call, Composite&& composite, Below&& below) {
  const bool again = call.any_tensor(
      [](const at::Tensor& tensor) { return requires_grad(tensor) || has_tangent(tensor); });
  if ((at::GradMode::is_enabled() && again) || needs_composite(call.forward) ||
      has_tangent(call.grad_out)) {
    return composite(call);
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

/// The registered operator of this name, to be called through the dispatcher.
template <class Function>
c10::TypedOperatorHandle<Function> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

}  // namespace nsimplex

#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>

// The decisions above autograd, which are the same for every operator with an autograd node. A
// call's any_input(predicate) tells whether a tensor that it may be differentiated in satisfies a
// predicate. A backward call's any_tensor(predicate) tells the same of any of its tensors.

namespace nsimplex {

inline bool requires_grad(const at::Tensor& tensor) { return tensor.requires_grad(); }
inline bool has_tangent(const at::Tensor& tensor) { return tensor._fw_grad(/*level=*/0).defined(); }

/// Whether a call must consist of ATen calls: a C++ autograd function supports neither functorch's
/// transforms nor forward mode.
template <class Call>
bool needs_composite(const Call& call) {
  return at::functorch::maybeCurrentDynamicLayer().has_value() || call.any_input(has_tangent);
}

/// The forward operator above autograd: `composite` consists of ATen calls, `below` computes and
/// records nothing, `record` applies the autograd function.
template <class Call, class Composite, class Below, class Record>
auto autograd_forward(const Call& call, Composite&& composite, Below&& below, Record&& record) {
  if (needs_composite(call)) return composite(call);
  if (at::GradMode::is_enabled() && call.any_input(requires_grad)) return record(call);
  const at::AutoDispatchBelowADInplaceOrView guard;
  return below(call);
}

/// The backward operator above autograd. If the gradient is differentiated again, `composite`
/// computes it, recorded operation by operation.
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

/// The registered operator of this name, for calls through the dispatcher.
template <class Function>
c10::TypedOperatorHandle<Function> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

}  // namespace nsimplex

// The autograd node of the dense operator, and what stands above it in the dispatcher: autocast and
// the batching rule of vmap.

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/library.h>

#include "attention/dense/dense_saved.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The operators below autograd: the kernel of the device, or the reference on request.
struct Kernels {
  static Output forward(const Call& call) { return dispatch(call); }
  static Gradients backward(const BackwardCall& call) { return dispatch(call); }
};
struct ReferenceKernels {
  static Output forward(const Call& call) { return dispatch_reference(call); }
  static Gradients backward(const BackwardCall& call) { return reference_backward(call); }
};

// Saves the inputs, out and lse, nothing else: O(T) memory. Key and value lists are TensorLists all
// the way: apply() looks into those, and not into a std::vector<Tensor>, whose gradients would
// vanish. Mask and sink come besides the options for the same reason.
template <class Implementation>
struct AttentionFunction : torch::autograd::Function<AttentionFunction<Implementation>> {
  static variable_list forward(AutogradContext* context, const Tensor& query, at::TensorList keys,
                               at::TensorList values, const OptionalTensor& /*mask*/,
                               const OptionalTensor& /*sink*/, const Options* options) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Call call{query, keys, values, *options};
    auto [out, lse] = Implementation::forward(call);
    save_call(*context, call, {out, lse});
    context->set_materialize_grads(false);
    return {out, lse};
  }

  // Calls the backward operator, through its own autograd kernel: that one decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const SavedCall saved(*context);
    const size_t order = saved.order(), inputs = 1 + 2 * order;
    variable_list result(inputs + 3);  // mask and sink, and the options, which have no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;

    const Tensor grad_out = grads[0].defined() ? grads[0] : at::zeros_like(saved.out());
    const OptionalTensor grad_lse = grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt;
    c10::List<bool> wanted;
    wanted.reserve(inputs + 2);
    for (size_t i = 0; i < inputs; ++i) wanted.push_back(context->needs_input_grad(i));
    size_t edge = inputs;  // an absent option has no edge
    for (const OptionalTensor* option : {&saved.mask(), &saved.sink()}) {
      wanted.push_back(option->has_value() && context->needs_input_grad(edge++));
    }

    auto [grad_query, grad_keys, grad_values, grad_mask, grad_sink] = Implementation::backward(
        {saved.call(), saved.out(), saved.lse(), grad_out, grad_lse, wanted});
    const auto hand_over = [&](size_t i, Tensor& gradient) {
      if (wanted[i]) result[i] = std::move(gradient);
    };
    hand_over(0, grad_query);
    for (size_t m = 0; m < order; ++m) {
      hand_over(1 + m, grad_keys[m]);
      hand_over(1 + order + m, grad_values[m]);
    }
    hand_over(inputs, grad_mask);
    hand_over(inputs + 1, grad_sink);
    return result;
  }
};

template <class Predicate>
bool any_input(const Call& call, Predicate&& predicate) {
  const auto option = [&](const OptionalTensor& tensor) { return tensor && predicate(*tensor); };
  return predicate(call.query) || std::any_of(call.keys.begin(), call.keys.end(), predicate) ||
         std::any_of(call.values.begin(), call.values.end(), predicate) ||
         option(call.options.mask) || option(call.options.sink);
}

bool requires_grad(const Tensor& tensor) { return tensor.requires_grad(); }
bool has_tangent(const Tensor& tensor) { return tensor._fw_grad(/*level=*/0).defined(); }

// A C++ autograd function knows neither functorch's transforms nor forward mode; the reference is
// made of operators that do.
bool needs_composite(const Call& call) {
  return at::functorch::maybeCurrentDynamicLayer().has_value() || any_input(call, has_tangent);
}

template <class Implementation>
Output autograd_forward(const Call& call) {
  if (needs_composite(call)) return reference_forward(call);
  if (!at::GradMode::is_enabled() || !any_input(call, requires_grad)) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return Implementation::forward(call);
  }
  variable_list result = AttentionFunction<Implementation>::apply(
      call.query, call.keys, call.values, call.options.mask, call.options.sink, &call.options);
  return {std::move(result[0]), std::move(result[1])};
}

// A gradient that is differentiated again is the reference's, recorded operation by operation.
Gradients autograd_backward(const BackwardCall& call) {
  const auto recorded = [&](const Tensor& tensor) {
    return requires_grad(tensor) || has_tangent(tensor);
  };
  const bool again = any_input(call.forward, recorded) || recorded(call.out) ||
                     recorded(call.lse) || recorded(call.grad_out) ||
                     (call.grad_lse && recorded(*call.grad_lse));
  if ((at::GradMode::is_enabled() && again) || needs_composite(call.forward) ||
      has_tangent(call.grad_out)) {
    return reference_backward(call);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch(call);
}

// In autocast's dtype, as matrix products do; softmax and sums are fp32 inside.
template <class Implementation, c10::DeviceType device>
Output autocast_forward(const Call& call) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(
      c10::DispatchKeySet(at::autocast::get_autocast_dispatch_key_from_device_type(device)));
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(device);
  const auto cast = [dtype](const auto& argument) {
    return at::autocast::cached_cast(dtype, argument, device);
  };
  const std::vector<Tensor> keys = cast(call.keys), values = cast(call.values);
  return Implementation::forward({cast(call.query), keys, values, call.options});
}

template <class Implementation>
constexpr auto autocast_cpu = &autocast_forward<Implementation, c10::DeviceType::CPU>;
template <class Implementation>
constexpr auto autocast_cuda = &autocast_forward<Implementation, c10::DeviceType::CUDA>;

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("attention", TORCH_FN(flat<&autograd_forward<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<&autograd_forward<ReferenceKernels>>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&autograd_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCPU, m) {
  m.impl("attention", TORCH_FN(flat<autocast_cpu<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<autocast_cpu<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCUDA, m) {
  m.impl("attention", TORCH_FN(flat<autocast_cuda<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<autocast_cuda<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::dense

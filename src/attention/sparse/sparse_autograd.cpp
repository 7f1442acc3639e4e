// The autograd node of the sparse operator, and what stands above it in the dispatcher: autocast
// and the batching rule of vmap.

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/library.h>

#include "attention/sparse/sparse_saved.h"

namespace nsimplex::sparse {
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
  static Gradients backward(const BackwardCall& call) { return dispatch_reference(call); }
};

// Saves the inputs, out and lse, nothing else: O(T) memory besides the list. Lists of tensors come
// as TensorLists, into which apply() looks for inputs.
template <class Implementation>
struct SparseFunction : torch::autograd::Function<SparseFunction<Implementation>> {
  static variable_list forward(AutogradContext* context, const Tensor& query, at::TensorList keys,
                               at::TensorList values, at::TensorList /*weights*/,
                               const Call* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Call own{query, keys, values, call->indices, call->offsets, call->options};
    auto [out, lse] = Implementation::forward(own);
    save_call(*context, own, {out, lse});
    context->set_materialize_grads(false);
    return {out, lse};
  }

  // Calls the backward operator, through its own autograd kernel: that one decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const SavedCall saved(*context);
    variable_list result(saved.inputs() + 1);  // the call itself has no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;

    const Tensor grad_out = grads[0].defined() ? grads[0] : at::zeros_like(saved.out());
    const OptionalTensor grad_lse = grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt;
    c10::List<bool> wanted;
    for (size_t i = 0; i < saved.inputs(); ++i) wanted.push_back(context->needs_input_grad(i));
    auto [query, keys, values, weights] = Implementation::backward(
        {saved.call(), saved.out(), saved.lse(), grad_out, grad_lse, wanted});
    size_t next = 0;
    const auto hand_over = [&](Tensor& gradient) {
      if (wanted[next]) result[next] = std::move(gradient);
      ++next;
    };
    hand_over(query);
    for (std::vector<Tensor>* const list : {&keys, &values, &weights}) {
      for (Tensor& gradient : *list) hand_over(gradient);
    }
    return result;
  }
};

template <class Predicate>
bool any_input(const Call& call, Predicate&& predicate) {
  const auto any = [&](at::TensorList list) {
    return std::any_of(list.begin(), list.end(), predicate);
  };
  return predicate(call.query) || any(call.keys) || any(call.values) || any(call.options.weights());
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
  variable_list result = SparseFunction<Implementation>::apply(call.query, call.keys, call.values,
                                                               call.options.weights(), &call);
  return {std::move(result[0]), std::move(result[1])};
}

// A gradient that is differentiated again is the reference's, recorded operation by operation.
template <class Implementation>
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
  return Implementation::backward(call);
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
  const std::vector<Tensor> weights = cast(call.options.weights());
  Options options = call.options;
  if (options.reducer_weights) options.reducer_weights = at::TensorList(weights);
  return Implementation::forward(
      {cast(call.query), keys, values, call.indices, call.offsets, options});
}

template <class Implementation>
constexpr auto autocast_cpu = &autocast_forward<Implementation, c10::DeviceType::CPU>;
template <class Implementation>
constexpr auto autocast_cuda = &autocast_forward<Implementation, c10::DeviceType::CUDA>;

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&autograd_forward<Kernels>>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&autograd_forward<ReferenceKernels>>));
  m.impl("sparse_attention_backward", TORCH_FN(flat_backward<&autograd_backward<Kernels>>));
  m.impl("sparse_attention_reference_backward",
         TORCH_FN(flat_backward<&autograd_backward<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCPU, m) {
  m.impl("sparse_attention", TORCH_FN(flat<autocast_cpu<Kernels>>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<autocast_cpu<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, AutocastCUDA, m) {
  m.impl("sparse_attention", TORCH_FN(flat<autocast_cuda<Kernels>>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<autocast_cuda<ReferenceKernels>>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("sparse_attention", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("sparse_attention_backward", TORCH_FN(flat_backward<&reference_backward>));
  m.impl("sparse_attention_reference_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::sparse

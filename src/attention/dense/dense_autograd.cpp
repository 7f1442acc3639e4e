// The autograd node of the dense operator and the batching rule of vmap.

#include <torch/library.h>

#include "attention/autograd.h"
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

template <class Implementation>
Output above_forward(const Call& call) {
  return autograd_forward(call, &reference_forward, &Implementation::forward, [](const Call& own) {
    variable_list result = AttentionFunction<Implementation>::apply(
        own.query, own.keys, own.values, own.options.mask, own.options.sink, &own.options);
    return Output(std::move(result[0]), std::move(result[1]));
  });
}

Gradients above_backward(const BackwardCall& call) {
  return autograd_backward(call, &reference_backward, &Kernels::backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("attention", TORCH_FN(flat<&above_forward<Kernels>>));
  m.impl("attention_reference", TORCH_FN(flat<&above_forward<ReferenceKernels>>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&above_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("attention_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::dense

// The autograd node of the separable operator and the batching rule of vmap.

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/separable_attention/separable_attention_call.h"
#include "support/operator.h"

namespace nsimplex::separable {
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

// Plain values: compiled autograd compares them.
c10::IValue pack(const Call& call) {
  std::vector<c10::IValue> window;
  if (call.window) window.assign(call.window->begin(), call.window->end());
  return c10::ivalue::Tuple::create({static_cast<int64_t>(call.keys.size()), call.causal,
                                     c10::ivalue::Tuple::create(std::move(window))});
}

// Saves inputs and outputs, nothing else: O(T) memory. Key and value lists are TensorLists all the
// way, since apply() does not look into vectors.
template <class Implementation>
struct SeparableFunction : torch::autograd::Function<SeparableFunction<Implementation>> {
  static variable_list forward(AutogradContext* context, const Tensor& query, at::TensorList keys,
                               at::TensorList values, const Call* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, normalizer] =
        Implementation::forward({query, keys, values, call->causal, call->window});
    variable_list saved{query};
    saved.insert(saved.end(), keys.begin(), keys.end());
    saved.insert(saved.end(), values.begin(), values.end());
    saved.insert(saved.end(), {out, normalizer});
    context->save_for_backward(std::move(saved));
    context->saved_data["options"] = pack(*call);
    context->set_materialize_grads(false);
    return {out, normalizer};
  }

  // Calls the backward operator through its own autograd kernel, which decides whether this
  // gradient will be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const auto& options = context->saved_data["options"].toTupleRef().elements();
    const auto order = static_cast<size_t>(options[0].toInt());
    variable_list result(2 + 2 * order);  // the last is the options'
    if (!grads[0].defined() && !grads[1].defined()) return result;

    c10::SmallVector<c10::SymInt, 8> window;
    for (const c10::IValue& each : options[2].toTupleRef().elements()) {
      window.push_back(each.toSymInt());
    }
    at::OptionalSymIntArrayRef flat_window;
    if (!window.empty()) flat_window = c10::SymIntArrayRef(window);
    const at::TensorList all(saved);
    const Tensor &out = saved[1 + 2 * order], &normalizer = saved[2 + 2 * order];
    const Tensor grad_out = grads[0].defined() ? grads[0] : at::zeros_like(out);
    const OptionalTensor grad_normalizer =
        grads[1].defined() ? OptionalTensor(grads[1]) : std::nullopt;
    auto [grad_query, grad_keys, grad_values] =
        Implementation::backward({{all[0], all.slice(1, order), all.slice(1 + order, order),
                                   options[1].toBool(), flat_window},
                                  out,
                                  normalizer,
                                  grad_out,
                                  grad_normalizer});
    const auto hand_over = [&](size_t i, Tensor& gradient) {
      if (context->needs_input_grad(i)) result[i] = std::move(gradient);
    };
    hand_over(0, grad_query);
    for (size_t m = 0; m < order; ++m) {
      hand_over(1 + m, grad_keys[m]);
      hand_over(1 + order + m, grad_values[m]);
    }
    return result;
  }
};

template <class Implementation>
Output above_forward(const Call& call) {
  return autograd_forward(call, &reference_forward, &Implementation::forward, [](const Call& own) {
    variable_list result =
        SeparableFunction<Implementation>::apply(own.query, own.keys, own.values, &own);
    return Output(std::move(result[0]), std::move(result[1]));
  });
}

Gradients above_backward(const BackwardCall& call) {
  return autograd_backward(call, &reference_backward, &Kernels::backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("separable_attention", TORCH_FN(flat<&above_forward<Kernels>>));
  m.impl("separable_attention_reference", TORCH_FN(flat<&above_forward<ReferenceKernels>>));
  m.impl("separable_attention_backward", TORCH_FN(flat_backward<&above_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("separable_attention", TORCH_FN(flat<&reference_forward>));
  m.impl("separable_attention_reference", TORCH_FN(flat<&reference_forward>));
  m.impl("separable_attention_backward", TORCH_FN(flat_backward<&reference_backward>));
}

}  // namespace
}  // namespace nsimplex::separable

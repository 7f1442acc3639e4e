// The autograd node of the sparse linear layer: it keeps the inputs and no sums.

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/autograd.h"
#include "equivariant/sparse/linear_call.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kInputs = 3;  // x, weight, bias: saved before the plan

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const OptionalTensor& bias, const LinearCall* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    variable_list saved{x, weight, bias.value_or(Tensor())};
    saved.insert(saved.end(), call->plan.begin(), call->plan.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["parts"] = call->parts.vec();
    context->saved_data["mean"] = call->mean;
    return dispatch_linear({x, weight, bias, call->plan, call->parts, call->mean});
  }

  // Through the backward operator's own autograd kernel, which decides whether this gradient will
  // be differentiated again.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const OptionalTensor bias = saved[2].defined() ? OptionalTensor(saved[2]) : std::nullopt;
    const std::vector<int64_t> parts = context->saved_data["parts"].toIntVector();
    const LinearCall call{saved[0], saved[1],
                          bias,     at::TensorList(saved).slice(kInputs),
                          parts,    context->saved_data["mean"].toBool()};
    auto [x, weight, bias_gradient] =
        dispatch_linear_backward({grads[0],
                                  call,
                                  {context->needs_input_grad(0), context->needs_input_grad(1),
                                   bias.has_value() && context->needs_input_grad(2)}});
    return {x, weight, bias_gradient, Tensor()};
  }
};

Tensor above(const LinearCall& call) {
  return autograd_forward(call, &reference_linear, &dispatch_linear, [](const LinearCall& own) {
    return LinearFunction::apply(own.x, own.weight, own.bias, &own);
  });
}

LinearGradients above_backward(const LinearBackwardCall& call) {
  return autograd_backward(call, &reference_linear_backward, &dispatch_linear_backward);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&above>));
  m.impl("equivariant_linear_sparse_backward", TORCH_FN(flat_linear_backward<&above_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant

// Derivatives of the rotary operator. A rotation's transpose is its inverse, so the backward is the
// operator itself, turning the other way, and second derivatives need nothing of their own.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/autograd.h"
#include "attention/rotary/rotary_call.h"

namespace nsimplex::rotations {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// With y = R(angle) x: d y_a / d angle = -y_b and d y_b / d angle = y_a, summed over the batch
// entries and heads that share the angle.
Tensor grad_angles(const Tensor& angles, const Tensor& out, const Tensor& grad, int64_t chunk,
                   bool inverse) {
  const at::ScalarType type = c10::promoteTypes(angles.scalar_type(), at::kFloat);
  const auto [y_a, y_b] = planes_of(out.to(type), chunk);
  const auto [grad_a, grad_b] = planes_of(grad.to(type), chunk);
  const Tensor each = (grad_b * y_a - grad_a * y_b).transpose(1, 2);  // [B, T, H, P]
  const Tensor sum = at::sum_to(each, with_batch_and_heads(angles).sym_sizes());
  return (inverse ? sum.neg() : sum).view_symint(angles.sym_sizes()).to(angles.scalar_type());
}

struct RotaryFunction : torch::autograd::Function<RotaryFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& /*x*/, const OptionalTensor& angles,
                        const OptionalTensor& positions, const Call* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    Tensor out = dispatch(*call);
    // Only the angles' gradient looks at the output.
    const bool keep = angles && angles->requires_grad();
    context->save_for_backward(
        {angles.value_or(Tensor()), positions.value_or(Tensor()), keep ? out : Tensor()});
    context->saved_data["chunk"] = call->chunk;
    context->saved_data["base"] = call->base;
    context->saved_data["offset"] = call->offset;
    context->saved_data["inverse"] = call->inverse;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const auto given = [](const Tensor& tensor) {
      return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
    };
    const OptionalTensor angles = given(saved[0]), positions = given(saved[1]);
    auto& data = context->saved_data;
    const int64_t chunk = data["chunk"].toInt();
    const bool inverse = data["inverse"].toBool();
    variable_list result(4);
    if (context->needs_input_grad(0)) {
      result[0] = dispatch({grads[0], chunk, data["base"].toDouble(), data["offset"].toSymInt(),
                            positions, angles, !inverse});
    }
    if (angles && context->needs_input_grad(1)) {
      result[1] = grad_angles(*angles, saved[2], grads[0], chunk, inverse);
    }
    return result;
  }
};

Tensor autograd(const Call& call) {
  if (needs_composite(call)) return composite(call);
  return RotaryFunction::apply(call.x, call.angles, call.positions, &call);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) { m.impl("rotary", TORCH_FN(flat<&autograd>)); }

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) { m.impl("rotary", TORCH_FN(flat<&composite>)); }

}  // namespace
}  // namespace nsimplex::rotations

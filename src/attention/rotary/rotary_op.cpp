// Schema, public function, shapes and the ATen version of the rotary operator, and its derivatives.
// The transpose of a rotation is its inverse. So the backward is the same operator with the
// opposite angle, and second derivatives need no further code.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <nsimplex/rotary.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/rotary/rotary_call.h"
#include "support/operator.h"

namespace nsimplex {
namespace rotations {

using at::Tensor;

Tensor dispatch(const Call& call) {
  static const Operator<Tensor, Call> rotary("nsimplex::rotary");
  return rotary(call);
}

std::pair<Tensor, Tensor> planes_of(const Tensor& x, int64_t chunk) {
  const int64_t planes = chunk / 2;
  const Tensor pairs =
      x.unflatten(-1, {-1, chunk}).narrow(-1, 0, 2 * planes).unflatten(-1, {planes, 2});
  return {pairs.select(-1, 0).flatten(-2), pairs.select(-1, 1).flatten(-2)};
}

Tensor composite(const Call& call) {
  check(call);
  const Turns turns = turns_of(call);
  const Tensor cosines = turns.cosines.transpose(1, 2), sines = turns.sines.transpose(1, 2);
  const Tensor wide = call.x.to(cosines.scalar_type());
  const auto [a, b] = planes_of(wide, call.chunk);
  const Tensor turned = at::stack({a * cosines - b * sines, a * sines + b * cosines}, -1);
  // [B, H, T, P, 2] -> chunks of whole planes, and the remaining channel.
  Tensor chunks = turned.unflatten(-2, {-1, call.chunk / 2}).flatten(-2);
  if (call.chunk % 2 == 1) {
    const Tensor last = wide.unflatten(-1, {-1, call.chunk}).narrow(-1, call.chunk - 1, 1);
    chunks = at::cat({chunks, last}, -1);
  }
  return dense::in_order_of(call.x, chunks.flatten(-2));
}

namespace {

Tensor meta(const Call& call) {
  check(call);
  return dense::empty_in_order(call.x, call.x.sym_sizes(), call.x.options());
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("rotary(Tensor x, *" NSIMPLEX_SCHEMA_OF(NSIMPLEX_ROTARY_OPTIONS) ") -> Tensor",
        {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) { m.impl("rotary", TORCH_FN(flat<&meta>)); }

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("rotary", TORCH_FN(flat<&composite>));
}

}  // namespace
}  // namespace rotations

at::Tensor rotary(const at::Tensor& x, const RotaryOptions& options) {
  const at::Tensor heads_first = dense::swap_heads(options.layout, x);
  const at::Tensor turned =
      rotations::dispatch({heads_first, options.chunk, options.base, options.offset,
                           options.positions, options.angles, options.inverse});
  return dense::swap_heads(options.layout, turned);
}

}  // namespace nsimplex

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
                        const Call* call) {
    const at::AutoDispatchBelowADInplaceOrView below;
    Tensor out = dispatch(*call);
    // Only the gradient of the angles needs the output.
    const bool keep = angles && angles->requires_grad();
    Call kept = *call;
    kept.x.reset();
    save_call(*context, kept, {keep ? out : Tensor()});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    SavedCall<Call> saved(*context);
    const Call& call = saved.call();
    variable_list result(3);  // the call itself has no gradient
    if (context->needs_input_grad(0)) {
      Call back = call;
      back.x = grads[0];
      back.inverse = !call.inverse;
      result[0] = dispatch(back);
    }
    if (call.angles && context->needs_input_grad(1)) {
      result[1] =
          grad_angles(*call.angles, saved.next_result(), grads[0], call.chunk, call.inverse);
    }
    return result;
  }
};

Tensor autograd(const Call& call) {
  if (needs_composite(call)) return composite(call);
  return RotaryFunction::apply(call.x, call.angles, &call);
}

TORCH_LIBRARY_IMPL(nsimplex, Autograd, m) { m.impl("rotary", TORCH_FN(flat<&autograd>)); }

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) { m.impl("rotary", TORCH_FN(flat<&composite>)); }

}  // namespace
}  // namespace nsimplex::rotations

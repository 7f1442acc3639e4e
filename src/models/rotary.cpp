#include "models/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/InferenceMode.h>

namespace nsimplex::detail {

const at::Tensor& RotaryTable::factors(int64_t length, const at::Tensor& like) {
  const auto type = like.scalar_type() == at::kDouble ? at::kComplexDouble : at::kComplexFloat;
  if (factors_.defined() && factors_.size(0) >= length && factors_.scalar_type() == type &&
      factors_.device() == like.device()) {
    return factors_;
  }
  // The table outlives this call, so it must serve training even when first built while evaluating.
  const c10::InferenceMode ordinary_tensors(false);
  const at::NoGradGuard no_grad;
  // Angles in double: in fp32 a position of some thousand has lost its last digits.
  const auto real = like.options().dtype(at::kDouble);
  const at::Tensor planes = at::arange(head_dim_ / 2, real);
  const at::Tensor theta = at::pow(base_, planes * (-2.0 / static_cast<double>(head_dim_)));
  const at::Tensor angles = at::arange(length, real).unsqueeze(1) * theta;
  factors_ = at::polar(at::ones_like(angles), angles).to(type).unsqueeze(1);
  return factors_;
}

at::Tensor RotaryTable::rotate(const at::Tensor& x) {
  // One complex multiplication is the fewest passes over memory that ATen offers for a rotation.
  const bool half = x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble;
  const at::Tensor wide = half ? x.to(at::kFloat) : x;
  const at::Tensor turns = factors(x.size(1), wide).narrow(0, 0, x.size(1));
  const at::Tensor planes = at::view_as_complex(wide.unflatten(-1, {head_dim_ / 2, 2}));
  const at::Tensor turned = at::view_as_real(planes * turns).flatten(-2);
  return half ? turned.to(x.scalar_type()) : turned;
}

}  // namespace nsimplex::detail

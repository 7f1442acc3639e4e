#include <ATen/ATen.h>
#include <nsimplex/analysis_lipschitz.h>

#include "analysis/ascent.h"
#include "analysis/checks.h"

namespace nsimplex {

using analysis::AscentProblem;
using analysis::Norm;
using analysis::Tensors;
using at::Tensor;

JacobianNorm jacobian_norm(const TensorFunction& function, const Tensor& x,
                           const AscentOptions& options) {
  analysis::check_problems("jacobian_norm", {x});
  const AscentProblem problem{.function = function};
  const auto found =
      ascend(problem, {x}, {analysis::random_direction({x}, Norm::frobenius)}, options);
  return {found.value, found.directions[0][0]};
}

LipschitzEstimate lipschitz_constant(const TensorFunction& function, const Tensor& start,
                                     double radius, const AscentOptions& options) {
  analysis::check_problems("lipschitz_constant", {start});
  analysis::check_positive("lipschitz_constant", "radius", radius);
  const AscentProblem problem{.function = function, .domains = {{.radius = radius}}};
  const auto found =
      ascend(problem, {start}, {analysis::random_direction({start}, Norm::frobenius)}, options);
  return {found.value, found.inputs[0], found.directions[0][0]};
}

}  // namespace nsimplex

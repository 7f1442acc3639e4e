#include <ATen/ATen.h>
#include <nsimplex/causal_embedding.h>
#include <torch/library.h>

#include <cmath>

namespace nsimplex {

using at::Tensor;

Tensor causal_angles(const Tensor& ball, const CausalAnglesOptions& options) {
  const auto& [heads, scale, by_dimension, head_scale, leading] = options;
  TORCH_CHECK_TYPE(at::isFloatingType(ball.scalar_type()),
                   "[causal_angles] ball: expected floating point numbers, got ",
                   ball.scalar_type());
  TORCH_CHECK_VALUE(ball.dim() == 2 && ball.size(1) > 0,
                    "[causal_angles] ball: expected shape [features, d], got ", ball.sizes());
  const int64_t d = ball.size(1);
  TORCH_CHECK_VALUE(heads >= 0 && (heads == 0 || d % heads == 0),
                    "[causal_angles] heads: expected 0 or a divisor of the dimension ", d, ", got ",
                    heads);
  TORCH_CHECK_VALUE(leading >= 0, "[causal_angles] leading: expected 0 or more, got ", leading);
  TORCH_CHECK_VALUE(std::isfinite(scale), "[causal_angles] scale: expected a finite number, got ",
                    scale);
  const double c = by_dimension ? scale * std::sqrt(static_cast<double>(d)) : scale;
  Tensor angles = c * ball;
  if (heads > 0) angles = angles.reshape({ball.size(0), heads, d / heads});
  if (head_scale) {
    TORCH_CHECK_VALUE(heads > 0 && head_scale->dim() == 1 && head_scale->size(0) == heads,
                      "[causal_angles] head_scale: expected shape [heads] with heads given, got ",
                      head_scale->sizes(), " with heads ", heads);
    angles = angles * head_scale->unsqueeze(-1);
  }
  if (leading > 0) {
    std::vector<int64_t> shape = angles.sizes().vec();
    shape[0] = leading;
    angles = at::cat({at::zeros(shape, angles.options()), angles});
  }
  return angles;
}

namespace {

Tensor angles(const Tensor& ball, int64_t heads, double scale, bool by_dimension,
              const std::optional<Tensor>& head_scale, int64_t leading) {
  return causal_angles(ball, {heads, scale, by_dimension, head_scale, leading});
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_angles(Tensor ball, int heads, float scale, bool by_dimension, Tensor? head_scale, "
      "int leading) -> Tensor",
      TORCH_FN(angles));
}

}  // namespace
}  // namespace nsimplex

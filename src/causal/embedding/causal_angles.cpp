// Turns points of an embedding into angles of a rotary encoding.

#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <nsimplex/causal_embedding.h>
#include <torch/library.h>

#include <cmath>

#include "support/as_function.h"
#include "support/size_limits.h"

namespace nsimplex {

using at::Tensor;

namespace {

// Floating point numbers. Numbers on the CPU that may be read now are also finite: an infinite
// angle has no sine. A check on another device would wait for it.
void check_coordinates(const char* argument, const Tensor& numbers) {
  TORCH_CHECK_TYPE(at::isFloatingType(numbers.scalar_type()), "[causal_angles] ", argument,
                   ": expected floating point numbers, got ", numbers.scalar_type());
  TORCH_CHECK_VALUE(numbers.layout() == at::kStrided && !numbers.is_nested(), "[causal_angles] ",
                    argument, ": expected a dense tensor, got another layout");
  if (!numbers.is_cpu() || at::isTensorSubclassLike(numbers)) return;
  TORCH_CHECK_VALUE(numbers.isfinite().all().item<bool>(), "[causal_angles] ", argument,
                    ": expected finite numbers, got NaN or infinity");
}

}  // namespace

Tensor causal_angles(const Tensor& ball, const CausalAnglesOptions& options) {
  const auto& [heads, scale, by_dimension, head_scale, leading] = options;
  check_coordinates("ball", ball);
  if (head_scale) check_coordinates("head_scale", *head_scale);
  TORCH_CHECK_VALUE(ball.dim() == 2 && ball.size(1) > 0,
                    "[causal_angles] ball: expected shape [features, d], got ", ball.sizes());
  const int64_t d = ball.size(1);
  TORCH_CHECK_VALUE(heads >= 0 && (heads == 0 || d % heads == 0),
                    "[causal_angles] heads: expected 0 or a divisor of the dimension ", d, ", got ",
                    heads);
  TORCH_CHECK_VALUE(leading >= 0, "[causal_angles] leading: expected 0 or more, got ", leading);
  TORCH_CHECK_VALUE(std::isfinite(scale), "[causal_angles] scale: expected a finite number, got ",
                    scale);
  as_function("causal_angles", [&] {
    require_room("leading", {leading, d});
    require_room("ball", {ball.size(0), d});
  });
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

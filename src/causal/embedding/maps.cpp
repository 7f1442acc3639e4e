// Between the models of hyperbolic space, composed of ATen's operators: differentiable everywhere
// but where the formulas have no derivative.

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <nsimplex/causal_embedding.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "causal/embedding/points.h"

namespace nsimplex {
namespace {

using at::Tensor;

// What vectors of the last dimension are divided by before they are squared.
Tensor size_of(const Tensor& vectors) { return vectors.detach().abs().amax(-1, true).clamp_min(1); }

// Vectors x of the last dimension as |x| and x / |x|, computed in double: the rim of the ball takes
// the digits of a narrower type.
class Polar {
 public:
  explicit Polar(const Tensor& vectors) : wide_(vectors.to(at::kDouble)) {
    const Tensor size = size_of(wide_), scaled = wide_ / size;
    const Tensor squares = scaled.square().sum(-1, true);
    // The norm has no derivative at 0: there its place is taken by 1.
    zero_ = squares == 0;
    const Tensor norm = squares.masked_fill(zero_, 1).sqrt();
    radius_ = norm * size;
    direction_ = scaled / norm;
  }

  /// length(|x|) x / |x|, and `slope` x at the origin.
  template <class Function>
  Tensor along(double slope, const Function& length) const {
    return at::where(zero_, slope * wide_, direction_ * length(radius_));
  }

 private:
  Tensor wide_, radius_, direction_, zero_;
};

struct TypeLimits {
  double epsilon, largest;
};

TypeLimits limits_of(at::ScalarType type) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "limits_of", [] {
    using Limits = std::numeric_limits<scalar_t>;
    return TypeLimits{static_cast<double>(Limits::epsilon()), static_cast<double>(Limits::max())};
  });
}

void check_vectors(const char* function, const char* argument, const Tensor& vectors) {
  TORCH_CHECK_TYPE(at::isFloatingType(vectors.scalar_type()), "[", function, "] ", argument,
                   ": expected floating point numbers, got ", vectors.scalar_type());
  TORCH_CHECK_VALUE(vectors.dim() >= 1 && vectors.size(-1) >= 1, "[", function, "] ", argument,
                    ": expected shape [.., d], got ", vectors.sizes());
}

}  // namespace

Tensor hyperboloid_points(const Tensor& tangents) {
  check_vectors("hyperboloid_points", "tangents", tangents);
  // Sums of a few thousand derivatives are finite, too: those of double are not made in a wider type.
  const double most = std::min(std::asinh(0.5 * limits_of(tangents.scalar_type()).largest), 700.0);
  const Tensor space = Polar(tangents).along(
      1, [most](const Tensor& radius) { return radius.clamp_max(most).sinh(); });
  // sqrt(1 + |space|^2), so that <p, p> = -1 holds to rounding.
  const Tensor size = size_of(space);
  const Tensor squares = (space / size).square().sum(-1, true) + size.reciprocal().square();
  return at::cat({size * squares.sqrt(), space}, -1).to(tangents.scalar_type());
}

Tensor ball_points(const Tensor& tangents) {
  check_vectors("ball_points", "tangents", tangents);
  const double most = causal::largest_ball_norm(limits_of(tangents.scalar_type()).epsilon);
  return Polar(tangents)
      .along(0.5, [most](const Tensor& radius) { return (0.5 * radius).tanh().clamp_max(most); })
      .to(tangents.scalar_type());
}

Tensor ball_tangents(const Tensor& ball) {
  check_vectors("ball_tangents", "ball", ball);
  // The last number before 1.
  const double most = 1 - 0.5 * limits_of(ball.scalar_type()).epsilon;
  return Polar(ball)
      .along(2, [most](const Tensor& norm) { return 2 * norm.clamp_max(most).atanh(); })
      .to(ball.scalar_type());
}

namespace {

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("hyperboloid_points(Tensor tangents) -> Tensor", TORCH_FN(hyperboloid_points));
  m.def("ball_points(Tensor tangents) -> Tensor", TORCH_FN(ball_points));
  m.def("ball_tangents(Tensor ball) -> Tensor", TORCH_FN(ball_tangents));
}

}  // namespace
}  // namespace nsimplex

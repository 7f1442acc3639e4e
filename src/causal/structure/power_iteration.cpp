#include "causal/structure/power_iteration.h"

#include <cmath>

namespace nsimplex::causal {
namespace {

constexpr double kSettled = 1e-8;  // relative change of the radius that ends the iteration

}  // namespace

double spectral_radius(const Product& times, const Product& times_transposed, int64_t features,
                       PerronVectors& vectors, int products) {
  auto& [left, right] = vectors;
  if (left.size() != features) {
    left = Vector::Ones(features).normalized();
    right = left;
  }
  // What the last matrix did not need may be what this one does.
  const double floor = 1e-3 / std::sqrt(static_cast<double>(features));
  left = left.cwiseMax(floor);
  right = right.cwiseMax(floor);
  Vector left_product(features), right_product(features);
  double radius = 0;
  for (int product = 0; product < products; ++product) {
    times(right, right_product);
    times_transposed(left, left_product);
    const double last = radius;
    radius = left.dot(right_product) / left.dot(right);
    if (right_product.squaredNorm() == 0 || left_product.squaredNorm() == 0) return 0;
    if (product > 0 && std::abs(radius - last) <= kSettled * radius) break;
    const double shift = radius / 2;
    right = (right_product + shift * right).normalized();
    left = (left_product + shift * left).normalized();
  }
  return radius;
}

}  // namespace nsimplex::causal

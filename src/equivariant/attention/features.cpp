#include "equivariant/attention/features.h"

#include <ATen/ATen.h>

#include <cmath>

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// Added to every feature, so that a sum of features is never 0.
constexpr double kReluFloor = 1e-3, kExponentialFloor = 1e-6;

// Both sides of a product of features carry half of the logit's 1 / sqrt(d).
double scale_of(const Tensor& x) { return std::pow(static_cast<double>(x.size(-1)), -0.25); }

// x [rows, H, d] times a matrix: as one product, and not one for every head.
Tensor times(const Tensor& x, const Tensor& matrix) {
  return at::mm(x.flatten(0, 1), matrix).view({x.size(0), x.size(1), matrix.size(1)});
}

// The largest exponent of each graph and head, at every row.
Tensor largest(const Tensor& exponents, const Tensor& graphs) {
  const Tensor of_row = exponents.detach().amax(-1, /*keepdim=*/true);  // [rows, H, 1]
  if (of_row.numel() == 0) return of_row;
  const Tensor places = graphs.view({-1, 1, 1}).expand_as(of_row);
  const int64_t count = graphs.max().item<int64_t>() + 1;
  return at::full({count, of_row.size(1), 1}, -INFINITY, of_row.options())
      .scatter_reduce(0, places, of_row, "amax")
      .index_select(0, graphs);
}

}  // namespace

Tensor apply_features(FeatureMap map, const Tensor& x, const Tensor& directions,
                      const std::optional<Tensor>& graphs) {
  const Tensor product = times(x, scale_of(x) * directions);
  if (map == FeatureMap::relu) return at::clamp_min(product, 0).add_(kReluFloor);
  Tensor exponents = product - 0.5 * (scale_of(x) * x).square().sum(-1, /*keepdim=*/true);
  if (graphs) exponents = exponents - largest(exponents, *graphs);
  const double count = static_cast<double>(directions.size(1));
  return exponents.exp() / std::sqrt(count) + kExponentialFloor;
}

Tensor features_backward(FeatureMap map, const Tensor& x, const Tensor& directions,
                         const Tensor& features, const Tensor& grad) {
  const Tensor turned = (scale_of(x) * directions).t();
  if (map == FeatureMap::relu) {
    return times(at::threshold_backward(grad, features, kReluFloor), turned);
  }
  const Tensor slope = grad * (features - kExponentialFloor);
  return times(slope, turned) -
         slope.sum(-1, /*keepdim=*/true) * x / std::sqrt(static_cast<double>(x.size(-1)));
}

}  // namespace nsimplex::equivariant

// Tests whether the noises of columns depend on each other.

#include "causal/structure/dependent_noises.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace nsimplex::causal {
namespace {

using at::Tensor;

constexpr double kLeastProbability = 1e-300;

Tensor standardised(const Tensor& values) {
  const Tensor centred = values - values.mean(0);
  return centred / centred.std(0, /*unbiased=*/false).clamp_min(1e-12);
}

// P-values of correlations of independent numbers, by Fisher's transformation.
Tensor two_sided(const Tensor& correlations, int64_t rows) {
  const double scale = std::sqrt(static_cast<double>(rows - 3));
  const Tensor z = correlations.clamp_max(1 - 1e-15).atanh() * scale;
  return at::erfc(z / std::numbers::sqrt2);
}

}  // namespace

Dependence dependent_noises(const Tensor& residuals, const Tensor& edges, double level) {
  const int64_t rows = residuals.size(0), count = residuals.size(1);
  const auto of_rows = [&](const Tensor& a, const Tensor& b) {
    return (a.t().mm(b) / static_cast<double>(rows)).abs();
  };
  const Tensor noise = standardised(residuals);
  const Tensor bounded = noise.tanh(), bell = (-noise.square() / 2).exp();
  const Tensor slope = (1 - bounded.square()).mean(0);
  const Tensor steep = (2 - 2 * (2 * noise).tanh().square()).mean(0);
  const std::vector<Tensor> curved{standardised((2 * noise).tanh() - bounded * steep / slope),
                                   standardised(bell + bounded * (noise * bell).mean(0) / slope)};
  Tensor largest = at::zeros({count, count}, at::kDouble);
  for (const Tensor& a : curved) {
    for (const Tensor& b : curved) largest = largest.maximum(of_rows(a, b));
  }
  const auto functions = static_cast<double>(curved.size() * curved.size());
  const Tensor curved_p = (functions * two_sided(largest, rows)).clamp_max(1);
  const Tensor plain = standardised(bounded);
  const Tensor plain_p =
      two_sided(of_rows(plain, plain), rows).masked_fill(edges.logical_or(edges.t()), 1);
  const Tensor p = (2 * curved_p.minimum(plain_p)).clamp_max(1);
  const Tensor upper = at::triu_indices(count, count, 1, at::kLong);
  const Tensor own = p.minimum(p.t()).index({upper[0], upper[1]});
  const Tensor order = own.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const Tensor ascending = own.index_select(0, order);
  const double total = -2 * own.clamp_min(kLeastProbability).log().sum().item<double>();
  const Tensor limits = level / at::arange(own.numel(), 0, -1, at::kDouble);
  const int64_t passed = ascending.le(limits).to(at::kLong).cumprod(0).sum().item<int64_t>();
  return {upper.t().index_select(0, order.narrow(0, 0, passed)).contiguous(),
          ascending.narrow(0, 0, passed).clone(), own.numel(), total};
}

}  // namespace nsimplex::causal

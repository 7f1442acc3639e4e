#include "training/clustering.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <limits>

namespace nsimplex::training {
namespace {

using at::Tensor;

constexpr int64_t kMostRounds = 100;

// Squared distances [N, k].
Tensor squares(const Tensor& x, const Tensor& centres) { return at::cdist(x, centres).square(); }

Tensor start_centres(const Tensor& x, int64_t k, const at::Generator& generator) {
  const int64_t first = at::randint(x.size(0), {1}, generator, at::kLong).item<int64_t>();
  Tensor centres = x.narrow(0, first, 1);
  while (centres.size(0) < k) {
    const Tensor nearest = std::get<0>(squares(x, centres).min(1));
    // Where all rows are centres any row will do.
    const Tensor weight = nearest.sum().item<double>() > 0 ? nearest : at::ones_like(nearest);
    const Tensor next = at::multinomial(weight, 1, false, generator);
    centres = at::cat({centres, x.index_select(0, next)});
  }
  return centres;
}

// How many rows have labels i of a and j of b, float64.
Tensor contingency(const Tensor& a, const Tensor& b) {
  const int64_t rows = a.max().item<int64_t>() + 1, columns = b.max().item<int64_t>() + 1;
  return at::bincount(a * columns + b, {}, rows * columns).view({rows, columns}).to(at::kDouble);
}

double entropy(const Tensor& shares) { return -at::xlogy(shares, shares).sum().item<double>(); }

}  // namespace

Tensor k_means(const Tensor& table, int64_t k, uint64_t seed, int64_t starts) {
  const Tensor x = table.to(at::kDouble);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  Tensor best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t start = 0; start < starts; ++start) {
    Tensor centres = start_centres(x, k, generator), clusters;
    for (int64_t round = 0; round < kMostRounds; ++round) {
      const Tensor nearest = squares(x, centres).argmin(1);
      if (clusters.defined() && at::equal(nearest, clusters)) break;
      clusters = nearest;
      const Tensor sizes = at::bincount(clusters, {}, k).to(at::kDouble).unsqueeze(1);
      const Tensor sums = at::zeros_like(centres).index_add_(0, clusters, x);
      centres = at::where(sizes.gt(0), sums / sizes.clamp_min(1), centres);
    }
    const double sum = std::get<0>(squares(x, centres).min(1)).sum().item<double>();
    if (sum < least) {
      least = sum;
      best = clusters;
    }
  }
  return best;
}

double normalised_mutual_information(const Tensor& a, const Tensor& b) {
  const Tensor joint = contingency(a, b) / static_cast<double>(a.size(0));
  const double of_a = entropy(joint.sum(1)), of_b = entropy(joint.sum(0));
  if (of_a + of_b == 0) return 1.0;
  return 2.0 * (of_a + of_b - entropy(joint)) / (of_a + of_b);
}

double silhouette(const Tensor& table, const Tensor& labels) {
  const Tensor x = table.to(at::kDouble);
  const Tensor member = at::one_hot(labels).to(at::kDouble);  // [N, classes]
  const Tensor sums = at::cdist(x, x).matmul(member), sizes = member.sum(0);
  const Tensor own_size = sizes.index_select(0, labels);
  const Tensor own = sums.gather(1, labels.unsqueeze(1)).squeeze(1) / (own_size - 1);
  const Tensor others =
      (sums / sizes)
          .masked_fill(member.logical_or(sizes.eq(0)), std::numeric_limits<double>::infinity());
  const Tensor nearest = std::get<0>(others.min(1));
  const Tensor score = (nearest - own) / at::maximum(own, nearest);
  return at::where(own_size.gt(1), score, at::zeros_like(score)).mean().item<double>();
}

Tensor principal_components(const Tensor& table, int64_t count) {
  const Tensor centred = table.to(at::kDouble) - table.to(at::kDouble).mean(0);
  const auto [u, values, vt] = at::linalg_svd(centred, /*full_matrices=*/false);
  const int64_t kept = std::min(count, values.size(0));
  return u.narrow(1, 0, kept) * values.narrow(0, 0, kept);
}

}  // namespace nsimplex::training

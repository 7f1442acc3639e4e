#include "causal/structure/covered_edges.h"

#include <Eigen/Cholesky>

#include <algorithm>

#include "causal/structure/regression.h"

namespace nsimplex::causal {
namespace {

constexpr double kRidge = 1e-6;
// R^2 that differ by less are equal but for rounding.
constexpr double kEqual = 1e-9;

std::vector<int64_t> with(std::vector<int64_t> columns, int64_t column) {
  columns.insert(std::lower_bound(columns.begin(), columns.end(), column), column);
  return columns;
}

ParentSet parent_set(const Matrix& covariance, const GaussianCost& cost, int64_t column,
                     std::vector<int64_t> parents) {
  const double variance =
      noise_of(covariance, column, regress(covariance, column, parents).variance);
  const double price = cost.of(variance, parents.size());
  return {std::move(parents), variance, price};
}

}  // namespace

Vector explained_parts(const Matrix& covariance) {
  const Vector scale = covariance.diagonal().cwiseSqrt().cwiseInverse();
  Matrix correlations = scale.asDiagonal() * covariance * scale.asDiagonal();
  correlations.diagonal().array() += kRidge;
  const Matrix inverse =
      correlations.llt().solve(Matrix::Identity(covariance.rows(), covariance.cols()));
  return 1 - inverse.diagonal().array().inverse();
}

void turn_covered_edges(const Matrix& covariance, const AllowedEdges& edges,
                        const GaussianCost& cost, std::vector<ParentSet>& parents) {
  const Vector explained = explained_parts(covariance);
  const auto columns = static_cast<int64_t>(parents.size());
  for (bool turned = true; turned;) {
    turned = false;
    for (int64_t effect = 0; effect < columns; ++effect) {
      ParentSet& below = parents[static_cast<size_t>(effect)];
      for (const int64_t cause : std::vector<int64_t>(below.parents)) {
        ParentSet& above = parents[static_cast<size_t>(cause)];
        const bool backwards = explained[cause] > explained[effect] + kEqual;
        if (!backwards || below.parents != with(above.parents, cause)) continue;
        if (!edges.allowed(effect, cause) || edges.required(cause, effect)) continue;
        std::vector<int64_t> common = above.parents;
        above = parent_set(covariance, cost, cause, with(common, effect));
        below = parent_set(covariance, cost, effect, std::move(common));
        turned = true;
        break;  // its parents are others now
      }
    }
  }
}

}  // namespace nsimplex::causal

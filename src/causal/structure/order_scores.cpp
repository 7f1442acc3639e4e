#include "causal/structure/order_scores.h"

#include <algorithm>
#include <cmath>

#include "causal/graphs/paths.h"
#include "causal/structure/regression.h"

namespace nsimplex::causal {
namespace {

// A correlation of 1 says no more than this one.
constexpr double kLeastIndependent = 1e-10;

Matrix shares(const Matrix& covariance, const AllowedEdges& edges, double price) {
  const int64_t features = covariance.rows();
  Matrix result = Matrix::Zero(features, features);
  for (int64_t i = 0; i < features; ++i) {
    for (int64_t j = 0; j < features; ++j) {
      if (!edges.allowed(i, j)) continue;
      const double squared =
          covariance(i, j) * covariance(i, j) / (covariance(i, i) * covariance(j, j));
      result(i, j) = -std::log(std::max(1 - squared, kLeastIndependent));
    }
  }
  for (int64_t j = 0; j < features; ++j) {
    const double all = result.col(j).sum();
    if (all > 0) result.col(j) *= price / all;
  }
  return result;
}

// What one more column would lower a column's cost by.
double gain_of(const Covariance& covariance, const GaussianCost& cost, const ParentSet& set,
               int64_t column, int64_t more) {
  std::vector<int64_t> parents = set.parents;
  parents.push_back(more);
  const double variance = regress(covariance.matrix, column, parents).variance;
  return set.cost - cost.of(noise_of(covariance.matrix, column, variance), parents.size());
}

}  // namespace

Matrix order_scores(const Covariance& covariance, const AllowedEdges& edges,
                    const GaussianCost& cost, const std::vector<ParentSet>& parents) {
  const int64_t features = covariance.matrix.rows();
  const auto set_of = [&](int64_t column) -> const ParentSet& {
    return parents[static_cast<size_t>(column)];
  };
  Paths paths(features);
  std::vector<std::vector<int64_t>> effects(parents.size());
  for (int64_t effect = 0; effect < features; ++effect) {
    for (const int64_t cause : set_of(effect).parents) {
      paths.add({cause, effect});
      effects[static_cast<size_t>(cause)].push_back(effect);
    }
  }
  const auto may_turn = [&](int64_t cause, int64_t effect) {
    if (!edges.allowed(effect, cause) || edges.required(cause, effect)) return false;
    const std::vector<int64_t>& others = effects[static_cast<size_t>(cause)];
    return std::none_of(others.begin(), others.end(), [&](int64_t other) {
      return other != effect && paths.leads(other, effect);
    });
  };

  Matrix scores = shares(covariance.matrix, edges, cost.prices.next(0));
  for (int64_t effect = 0; effect < features; ++effect) {
    const ParentSet& set = set_of(effect);
    const Regression fit = regress(covariance.matrix, effect, set.parents);
    for (size_t k = 0; k < set.parents.size(); ++k) {
      const int64_t cause = set.parents[k];
      const double without = fit.variance + fit.increase[static_cast<int64_t>(k)];
      const double gain =
          cost.of(noise_of(covariance.matrix, effect, without), set.parents.size() - 1) - set.cost;
      double turned = 0, preference = 1;
      if (may_turn(cause, effect)) {
        turned = gain_of(covariance, cost, set_of(cause), cause, effect);
        preference = 1 / (1 + std::exp((turned - gain) / 2));
      }
      scores(cause, effect) += preference * std::max(gain, 0.0);
      scores(effect, cause) += (1 - preference) * std::max(turned, 0.0);
    }
  }
  return scores;
}

}  // namespace nsimplex::causal

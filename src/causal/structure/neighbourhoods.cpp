#include "causal/structure/neighbourhoods.h"

#include <algorithm>
#include <cmath>

#include "causal/structure/lasso.h"

namespace nsimplex::causal {
namespace {

// Below the sqrt(2 log M / n) that keeps strangers out: a stranger costs time, a lost cause an
// edge.
constexpr double kLenient = 0.5;
constexpr int kRounds = 3;           // of coefficients and residual in turn
constexpr double kTolerance = 1e-3;  // which edges there are is settled long before their weights

}  // namespace

std::vector<char> neighbourhoods(const Covariance& covariance,
                                 const std::function<void()>& checkpoint) {
  const Matrix& matrix = covariance.matrix;
  const int64_t features = matrix.rows();
  const double penalty = kLenient * std::sqrt(std::log(static_cast<double>(features)) /
                                              static_cast<double>(covariance.observations));
  std::vector<char> near(static_cast<size_t>(features * features), 0);
  for (int64_t column = 0; column < features; ++column) {
    if (checkpoint) checkpoint();
    std::vector<int64_t> others;
    for (int64_t other = 0; other < features; ++other) {
      if (other != column) others.push_back(other);
    }
    const Vector deviations = matrix.diagonal().cwiseSqrt()(others);
    Lasso lasso(matrix, column, others, kTolerance);
    for (int round = 0; round < kRounds; ++round) {
      lasso.solve(penalty * std::sqrt(std::max(lasso.variance(), 0.0)) * deviations);
    }
    const Vector& coefficients = lasso.coefficients();
    for (int64_t k = 0; k < coefficients.size(); ++k) {
      if (coefficients[k] == 0) continue;
      const int64_t other = others[static_cast<size_t>(k)];
      near[static_cast<size_t>(column * features + other)] = 1;
      near[static_cast<size_t>(other * features + column)] = 1;
    }
  }
  return near;
}

}  // namespace nsimplex::causal

// Declares total effects in linear models, their intervals, and what sampled graphs say of them.

#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/lasso.h"

namespace nsimplex::causal {

/// A number with a standard error that has a Student distribution. An error of 0 means that it is
/// known.
struct Estimate {
  double value = 0, error = 0, free = 1;
};

/// The ends between which an estimate lies with the probability `level`.
std::pair<double, double> interval_of(const Estimate& estimate, double level);

/// The same for an estimate that is one of several, each as likely as the others.
std::pair<double, double> interval_of(std::span<const Estimate> estimates, double level);

/// The estimate of a coefficient of a regression: `column` on `causes`, of which `cause` is one.
/// The error is infinite if the others determine the cause. Throws InputError "table: .." if no
/// degree of freedom remains. Complexity: O(p^3).
Estimate coefficient_of(const Covariance& covariance, int64_t column,
                        std::span<const int64_t> causes, int64_t cause);

/// The two-sided p-value of the hypothesis that the estimated number is 0.
double p_value_of(const Estimate& estimate);

/// The total effect of a column on another in an acyclic graph.
struct TotalEffect {
  bool path = false;                     ///< whether the cause has a directed path to the effect
  std::vector<int64_t> adjustment = {};  ///< ascending; none without a path
  Estimate estimate = {};
};

/// The effect is the coefficient of the cause in a regression of the effect on it and the optimal
/// adjustment set: the causes of all columns on directed paths from cause to effect, without these
/// columns, their effects and the cause. Its estimate has the least variance of all adjustment
/// sets, and the noise of the regression is independent of its columns for noise of any kind.
///
/// Source: Henckel, Perkovic, Maathuis, "Graphical criteria for efficient total effect estimation
/// via adjustment in causal linear models", JRSS B 2022.
///
/// Complexity: O(M^2 + p^3) for an adjustment set of p columns.
TotalEffect total_effect(const Covariance& covariance, const Matrix& graph, int64_t cause,
                         int64_t effect);

}  // namespace nsimplex::causal

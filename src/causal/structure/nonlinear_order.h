// Declares cross-validation, and the estimator `order` in its nonlinear form.

#pragma once

#include <cstdint>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/estimators.h"

namespace nsimplex::causal {

/// Splits rows at random into five parts. Each part is predicted from the other four.
class CrossValidation {
 public:
  using Columns = Eigen::MatrixXd;

  CrossValidation(int64_t rows, uint64_t seed);

  /// The errors [n, c] of every row of `outputs` [n, c], predicted from `features` [n, f] by least
  /// squares on the other parts. `ridge` is added to the mean square of every feature.
  ///
  /// Complexity: O(n f^2 + n f c + f^3).
  Columns errors(const Columns& features, const Columns& outputs, double ridge) const;

 private:
  std::vector<std::vector<int64_t>> parts_;
};

/// Structure learning if effects may be any smooth function of their causes. It fits four models,
/// returns the one that predicts held-out rows best, and names it in `model`. The criterion is n M
/// log(mean v) if the noises share one variance, and otherwise the sum of n log v plus (M - 1) log
/// n, where v are the mean squared errors of CrossValidation.
///
/// - additive, one variance per column: additive_graph().
/// - any function, one variance: joint_equal_graph().
/// - any function, one variance per column: joint_free_graph() from the additive graph, if
///   regressions on random features predict its columns better than sums do.
/// - linear: the answer of fit_order().
///
/// Functions of several causes together are tried with at least 50 rows and at most 200 columns.
///
/// `weights` are root mean square slopes with the sign of the mean slope, from regressions on
/// random features (in the linear model: coefficients). The score of an edge is the increase of n
/// log v without it. If the effect is no ancestor of the cause, the score of a pair also has the
/// price of an edge times the share that linear_order.h defines, here from regressions on single
/// columns.
///
/// Complexity: that of the searches; O(n M^2) for the linear model.
Structure fit_nonlinear_order(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal

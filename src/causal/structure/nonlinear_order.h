#pragma once

#include <cstdint>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/estimators.h"

namespace nsimplex::causal {

/// Rows in five parts, drawn at random, each of which is predicted from the other four.
class CrossValidation {
 public:
  using Columns = Eigen::MatrixXd;

  CrossValidation(int64_t rows, uint64_t seed);

  /// [n, c] errors of every row of `outputs` [n, c], predicted from `features` [n, f] by least
  /// squares on the other parts, with `ridge` added to the mean square of every feature.
  ///
  /// Complexity: O(n f^2 + n f c + f^3).
  Columns errors(const Columns& features, const Columns& outputs, double ridge) const;

 private:
  std::vector<std::vector<int64_t>> parts_;
};

/// Structure learning where effects may be any smooth function of their causes. Of four models the
/// one is delivered, and named in `model`, that predicts rows best which had no part in its fit:
/// least n M log(mean v) where noises share one variance, least sum of n log v and (M - 1) log n
/// where each column has its own, v being the mean squared errors of CrossValidation.
///
/// - additive, free variances: additive_graph().
/// - any function, one variance: joint_equal_graph().
/// - any function, free variances: joint_free_graph() from the additive graph, where regressions on
///   random features predict its columns better than sums do.
/// - linear: what fit_order() answers.
///
/// Functions of several causes together are tried for at least 50 rows and at most 200 columns.
///
/// `weights` are root mean square slopes with the sign of the mean slope, of regressions on random
/// features (coefficients in the linear model). `scores` of an edge are what n log v rises by
/// without it; added for every pair whose effect is no ancestor of its cause is the price of an edge
/// times the part that the cause has in all that single columns say about the effect.
///
/// Complexity: that of the searches; O(n M^2) for the linear model.
Structure fit_nonlinear_order(TableView table, const CausalFitOptions& options);

}  // namespace nsimplex::causal

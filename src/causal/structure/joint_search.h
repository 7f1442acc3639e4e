// Declares regressions on random features and the search that uses them.

#pragma once

#include <functional>
#include <vector>

#include "causal/structure/additive_search.h"
#include "causal/structure/nonlinear_order.h"
#include "causal/structure/order_search.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// Regression of columns on any smooth function of several others together: least squares on random
/// features, with errors of held-out rows.
///
/// The causes z are centred and have standard deviation 1. Their features are 1, z, and tanh(w^T z
/// / sqrt(p) + b) for fixed random w and b. Every column has its own part of w. The number of tanh
/// features depends on the number of rows and is at most 100.
///
/// Source: Huang, Zhu, Siew, "Extreme learning machine: theory and applications", Neurocomputing
/// 2006.
class RandomFeatureRegression {
 public:
  using Columns = Eigen::MatrixXd;

  RandomFeatureRegression(TableView table, uint64_t seed);

  /// The errors [n, c] of `columns` given `causes`, each row predicted by CrossValidation.
  /// Complexity: O(n f^2 + n f c) for f features and c columns.
  Columns errors(const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const;

  /// Mean squares of errors(), each at least 1e-10 of its column's variance.
  Vector residuals(const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const;

  /// The standard deviation of a column.
  double deviation(int64_t column) const { return deviations_[column]; }

  /// The slopes of a column with respect to each cause, per standard deviation of the cause.
  struct Slopes {
    Vector mean, square;  ///< mean of the derivative over the rows, and mean of its square
  };
  Slopes slopes(const std::vector<int64_t>& causes, int64_t column) const;

 private:
  Columns features(const std::vector<int64_t>& causes) const;
  Columns directions(const std::vector<int64_t>& causes) const;

  CrossValidation rows_;
  Vector deviations_;         ///< of the columns
  Columns inputs_, outputs_;  ///< the table scaled as causes, and centred
  Columns directions_;        ///< [M, features]: w
  Vector offsets_;            ///< [features]: b
};

/// The graph of a model with one noise variance, in which every column is any smooth function of
/// its parents together. The next column of the order is the one that the placed columns predict
/// best on held-out rows. Its candidates are the 20 predecessors on which it depends most.
/// Candidates are removed, the weakest first, if the held-out squared errors without them are not
/// larger by a paired test at edge_level().
///
/// Complexity: M + 20 M regressions.
ParentLists joint_equal_graph(const RandomFeatureRegression& regression, const AllowedEdges& edges,
                              const Precedence& precedence,
                              const std::function<void()>& checkpoint);

/// The held-out variance of a column given its causes, which ascend.
using Residual = std::function<double(int64_t column, const std::vector<int64_t>& causes)>;

/// Hill climbing from a given graph. Each step deletes, reverses or adds the edge that lowers the
/// sum of all columns' costs most. It ends if no step lowers the sum. Only the 10 columns that
/// explain a column best alone (lowest `alone`) are added to its parents.
///
/// Complexity: O(M) residuals, and a few dozen per step.
ParentLists climb(const Residual& residual, const AllowedEdges& edges, const GaussianCost& cost,
                  ParentLists start, const Matrix& alone);

}  // namespace nsimplex::causal

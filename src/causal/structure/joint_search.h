#pragma once

#include <functional>
#include <vector>

#include "causal/structure/additive_search.h"
#include "causal/structure/nonlinear_order.h"
#include "causal/structure/order_search.h"
#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// How well columns explain others by any smooth function of all of them together: least squares on
/// random features, with errors of rows that had no part in the fit.
///
/// The features of causes z, centred and of standard deviation 1: 1, z, and tanh(w^T z / sqrt(p) +
/// b) for fixed random w and b, of which every column has its own part: as many as the rows can
/// bear, 100 at most.
///
/// Source: Huang, Zhu, Siew, "Extreme learning machine: theory and applications", Neurocomputing
/// 2006.
class RandomFeatureRegression {
 public:
  using Columns = Eigen::MatrixXd;

  RandomFeatureRegression(TableView table, uint64_t seed);

  /// [n, c] errors of `columns` given `causes`, each row predicted by CrossValidation. Complexity:
  /// O(n f^2 + n f c) for f features and c columns.
  Columns errors(const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const;

  /// Mean squares of errors(), each at least 1e-10 of its column's variance.
  Vector residuals(const std::vector<int64_t>& causes, const std::vector<int64_t>& columns) const;

  /// Standard deviation.
  double deviation(int64_t column) const { return deviations_[column]; }

  /// How a column answers to each of its causes where that rises by its standard deviation.
  struct Slopes {
    Vector mean, square;  ///< of the derivative over the rows, and of its square
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

/// The graph of a model in which every column is any smooth function of its parents together, plus
/// noise of one variance: the next column of the order is the one of which those placed leave least
/// on rows held out. Of its predecessors, the 20 to which it answers most strongly are candidates;
/// those go, the weakest first, without which the held-out squared errors are not larger by a paired
/// test at edge_level().
///
/// Complexity: M + 20 M answers of the regression.
ParentLists joint_equal_graph(const RandomFeatureRegression& regression, const AllowedEdges& edges,
                              const Precedence& precedence,
                              const std::function<void()>& checkpoint);

/// A held-out variance of a column given its causes, which ascend.
using Residual = std::function<double(int64_t column, const std::vector<int64_t>& causes)>;

/// Hill climbing from a given graph: the deletion, reversal or addition of an edge that lowers the
/// sum of all columns' costs most, while one does. Only the 10 columns that explain a column best by
/// themselves, which leave the least of `alone`, are added to its parents.
///
/// Complexity: O(M) residuals, and a few dozen for every move.
ParentLists climb(const Residual& residual, const AllowedEdges& edges, const GaussianCost& cost,
                  ParentLists start, const Matrix& alone);

}  // namespace nsimplex::causal

// Declares regressions on cubic splines and the search that uses them.

#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"
#include "causal/structure/nonlinear_order.h"

namespace nsimplex::causal {

/// Orthonormal columns [n, k] that span the cubic splines of a variable with these values, without
/// the constant. The knots are quantiles, and k = intervals + 2, or fewer if there are few
/// different values. Every column has mean 0.
///
/// Complexity: O(n k^2 + n log n).
Eigen::MatrixXd spline_basis(const Vector& values, int64_t intervals);

/// Regression of columns on sums of one smooth function per cause: least squares on the cubic
/// splines of every cause. Columns are measured in their standard deviations.
class AdditiveRegression {
 public:
  explicit AdditiveRegression(TableView table);

  int64_t features() const { return static_cast<int64_t>(bases_.size()); }
  /// Number of coefficients of the function of one cause.
  int64_t parameters(int64_t cause) const { return basis(cause).cols(); }

  /// The part of a column's variance that `causes` (ascending) do not explain, at least 1e-10.
  /// Complexity: O(f^3) for f coefficients, and O(n) for each new pair of coefficients.
  double unexplained(int64_t column, const std::vector<int64_t>& causes);

  /// The part that a single column does not explain, for all pairs: entry [i, j] is the part of j
  /// given i. Complexity: O(n k M^2) for k coefficients per column.
  Matrix unexplained_by_one() const;

  /// Like unexplained(), for rows that are held out from the fit.
  double unexplained_held_out(int64_t column, const std::vector<int64_t>& causes,
                              const CrossValidation& rows) const;

 private:
  using Columns = Eigen::MatrixXd;
  const Columns& basis(int64_t column) const { return bases_[static_cast<size_t>(column)]; }
  const Columns& product(int64_t first, int64_t second);

  Columns table_;               ///< centred, each column of length 1
  std::vector<Columns> bases_;  ///< [n, k] per column, orthonormal
  std::vector<Columns> mixed_;  ///< [k, M] per column: products of its basis with all columns
  std::unordered_map<int64_t, Columns> products_;  ///< of two bases
};

/// Number of false edges to expect in a table of independent columns, at the level of the tests
/// below.
constexpr double kFalseEdges = 0.05;

/// The parents of every column, ascending.
using ParentLists = std::vector<std::vector<int64_t>>;

/// The graph of an additive model with one noise variance per column. Every column is a sum of one
/// smooth function per parent, plus noise.
///
/// The search starts with the required edges. Among the edges that close no cycle, it adds the one
/// whose gain in likelihood exceeds its price most. The price is the gain that an F-test of the
/// edge's coefficients requires at edge_level(). Then every column loses its least significant
/// parent as long as an F-test at that level does not reject this. With more than 50 columns, a
/// column chooses among the 30 that explain it best alone. `checkpoint` is called between edges.
///
/// Complexity: O(M^2) regressions, and O(M) per edge.
///
/// Source: Buehlmann, Peters, Ernest, "CAM: causal additive models, high-dimensional order search
/// and penalized regression", Annals of Statistics 2014. Here one search with the price of the test
/// replaces the pruning of a full order.
ParentLists additive_graph(AdditiveRegression& regression, const AllowedEdges& edges,
                           int64_t observations, const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal

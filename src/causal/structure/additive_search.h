#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "causal/graph/edge_constraints.h"
#include "causal/matrix.h"
#include "causal/structure/nonlinear_order.h"

namespace nsimplex::causal {

/// [n, k] orthonormal columns that span the cubic splines of a variable whose values are given, but
/// for the constant: knots at its quantiles, k = intervals + 2, fewer where it has few different
/// values. The mean of every column is 0.
///
/// Complexity: O(n k^2 + n log n).
Eigen::MatrixXd spline_basis(const Vector& values, int64_t intervals);

/// Columns explained by sums of one smooth function for each of their causes: least squares on the
/// cubic splines of every cause. Columns are measured in their standard deviations.
class AdditiveRegression {
 public:
  explicit AdditiveRegression(TableView table);

  int64_t features() const { return static_cast<int64_t>(bases_.size()); }
  /// Coefficients of the function of one cause.
  int64_t parameters(int64_t cause) const { return basis(cause).cols(); }

  /// The part of a column's variance that `causes`, ascending, leave, at least 1e-10. Complexity:
  /// O(f^3) for f coefficients, and O(n) for each pair of coefficients that is asked for the first
  /// time.
  double unexplained(int64_t column, const std::vector<int64_t>& causes);

  /// The part that each column leaves by itself, for all columns: entry [i, j] is of j given i.
  /// Complexity: O(n k M^2) for k coefficients a column.
  Matrix unexplained_by_one() const;

  /// The same as unexplained(), of rows that had no part in the fit.
  double unexplained_held_out(int64_t column, const std::vector<int64_t>& causes,
                              const CrossValidation& rows) const;

 private:
  using Columns = Eigen::MatrixXd;
  const Columns& basis(int64_t column) const { return bases_[static_cast<size_t>(column)]; }
  const Columns& product(int64_t first, int64_t second);

  Columns table_;               ///< centred, each column of squared length 1
  std::vector<Columns> bases_;  ///< [n, k] of each column, orthonormal
  std::vector<Columns> mixed_;  ///< [k, M] of each column: its basis with all columns
  std::unordered_map<int64_t, Columns> products_;  ///< of two bases
};

/// Expected false edges in a table of independent columns, at the level of the tests below.
constexpr double kFalseEdges = 0.05;

/// Parents of every column, ascending.
using ParentLists = std::vector<std::vector<int64_t>>;

/// The graph of an additive model whose noises have variances of their own: every column is a sum of
/// one smooth function for each of its parents, and noise.
///
/// From the required edges the graph grows by the edge that raises the likelihood most beyond its
/// price, among those that close no cycle; the price is what an F-test of the edge's coefficients at
/// edge_level() asks for. Then every column loses its least significant parent while an F-test at
/// that level does not miss it. With more than 50 columns a column chooses among the 30 that by
/// themselves explain it best. `checkpoint` is called between edges.
///
/// Complexity: O(M^2) regressions, and O(M) for every edge.
///
/// Source: Buehlmann, Peters, Ernest, "CAM: causal additive models, high-dimensional order search
/// and penalized regression", Annals of Statistics 2014, with one search under the test's price in
/// place of a full order that is pruned.
ParentLists additive_graph(AdditiveRegression& regression, const AllowedEdges& edges,
                           int64_t observations, const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal

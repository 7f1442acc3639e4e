#pragma once

#include <unordered_map>
#include <vector>

#include "causal/structure/cross_validation.h"

namespace nsimplex::causal {

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

}  // namespace nsimplex::causal

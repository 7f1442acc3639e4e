#pragma once

#include <span>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Least squares of a column on others, by their covariance. What other columns already explain
/// (but for rounding) takes no part and has coefficient 0.
struct Regression {
  double variance;      ///< of the residual
  Vector coefficients;  ///< in the order of the causes
  Vector increase;      ///< of the variance, were this cause left out
};

/// Complexity: O(p^3) for p causes.
Regression regress(const Matrix& covariance, int64_t column, std::span<const int64_t> causes);

/// Columns given others, one more at a time.
class ConditionedColumns {
 public:
  explicit ConditionedColumns(const Matrix& covariance);

  /// O(M p) for the p-th column.
  void condition_on(int64_t column);

  double variance(int64_t column) const { return variance_[column]; }
  /// Of `column` with every column. O(M p).
  Vector covariance_with(int64_t column) const;
  /// Whether something is left of a column that the others do not explain.
  bool varies(int64_t column) const;

 private:
  const Matrix& covariance_;
  Vector variance_;
  std::vector<Vector> rows_;  ///< of the Cholesky factor: covariance = rows^T rows + what is left
};

}  // namespace nsimplex::causal

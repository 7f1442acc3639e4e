#pragma once

#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// One column's regression on some others with an l1 norm, from a covariance S alone:
///
///     min_b  (S_jj - 2 b . S_cj + b . S_cc b) / 2 + sum_k l1_k |b_k|,    c = the causes
///
/// by coordinate descent: all coordinates, then those that are not zero until they stand still, and
/// again, until a sweep of all changes nothing. Keep one and solve again with other penalties:
/// the last answer is where it starts. Complexity: O(|c|) for each coordinate that changes, O(|c|)
/// for a sweep that changes none.
class Lasso {
 public:
  /// Keeps a reference to the covariance. A sweep changes nothing where no step times its column's
  /// standard deviation exceeds `tolerance` times the effect's.
  Lasso(const Matrix& covariance, int64_t effect, std::vector<int64_t> causes,
        double tolerance = 1e-7);

  /// The coefficients, one a cause.
  const Vector& solve(const Vector& l1);
  const Vector& coefficients() const { return coefficients_; }

  /// The variance that the coefficients leave.
  double variance() const;

 private:
  bool sweep(const Vector& l1, bool all);

  const Matrix& covariance_;
  int64_t effect_;
  double least_step_;
  std::vector<int64_t> causes_;
  Vector coefficients_;
  Vector left_;  // covariances of the causes with what is left of the effect
};

}  // namespace nsimplex::causal

#pragma once

#include <functional>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/acyclicity.h"

namespace nsimplex::causal {

/// All that a linear Gaussian model sees of a table.
struct Covariance {
  Matrix matrix;         ///< [M, M], divided by the number of observations
  int64_t observations;  ///< n
};

/// Of the columns of a table, whatever their means. Complexity: O(n M^2).
Covariance covariance_of(TableView table);

/// The linear model's loss, half the variance that A leaves of every column:
///
///     L(A) = tr((I - A)^T S (I - A)) / 2,    dL/dA = S (A - I),    S = the covariance
///
/// as a function of the weights of candidate edges. Complexity: O(sum over effects of candidates
/// times weights that are not zero); nothing depends on the number of observations.
class LeastSquares {
 public:
  /// Keeps references to both.
  LeastSquares(const Matrix& covariance, const CandidateEdges& edges);

  /// L and its gradient, one number an edge.
  double operator()(const Vector& weights, Vector& gradient);

 private:
  const Matrix& covariance_;
  const CandidateEdges& edges_;
  Vector left_;  // covariances of all columns with what is left of one
};

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

/// [M, M] flags, symmetric: whether the l1 regression of one of two columns on all others takes the
/// other. Every cause and effect of a column, and the other causes of its effects, are what its
/// regression needs; so a graph is looked for among few edges and not M^2.
///
/// The penalty of a column is its residual standard deviation times those of the causes times
/// sqrt(log M / n) / 2, found together with the coefficients (scaled lasso), so that
/// units and noises are of no matter. Complexity: O(M) a coordinate that moves, M regressions.
///
/// Sources: Meinshausen, Buehlmann, "High-dimensional graphs and variable selection with the
/// lasso", Annals of Statistics 2006; Sun, Zhang, "Scaled sparse linear regression", Biometrika
/// 2012.
std::vector<char> neighbourhoods(const Covariance& covariance,
                                 const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal

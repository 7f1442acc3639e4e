// Declares covariances, the least-squares loss and lasso regressions.

#pragma once

#include <functional>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/acyclicity.h"

namespace nsimplex::causal {

/// The statistics of a table on which a linear Gaussian model depends.
struct Covariance {
  Matrix matrix;         ///< [M, M], divided by the number of observations
  int64_t observations;  ///< n
};

/// Of the columns of a table after centring. Complexity: O(n M^2).
Covariance covariance_of(TableView table);

/// The loss of the linear model: half of the variance that A does not explain, summed over columns,
///
///     L(A) = tr((I - A)^T S (I - A)) / 2,    dL/dA = S (A - I),    S = the covariance
///
/// as a function of the weights of candidate edges. Complexity: the sum over effects of candidates
/// times weights that are not zero. It does not depend on the number of observations.
class LeastSquares {
 public:
  /// Keeps references to both arguments. Effects with few candidates get a copy of their
  /// covariances, which takes 1 GB at most.
  LeastSquares(const Matrix& covariance, const CandidateEdges& edges);

  /// L and its gradient, one number per edge.
  double operator()(const Vector& weights, Vector& gradient);

 private:
  double of_effect(int64_t effect, const Vector& weights, Vector& gradient) const;

  const Matrix& covariance_;
  const CandidateEdges& edges_;
  std::vector<Matrix> among_;  // covariances of an effect's candidates, or empty
};

/// The regression of one column on some others with an l1 norm, from a covariance S alone:
///
///     min_b  (S_jj - 2 b . S_cj + b . S_cc b) / 2 + sum_k l1_k |b_k|,    c = the causes
///
/// The method is coordinate descent. It alternates a sweep over all coordinates with sweeps over
/// those that are not zero, until a sweep over all changes nothing. An object can solve again with
/// other penalties; it then starts from its last answer. Complexity: O(|c|) per coordinate that
/// changes, and O(|c|) for a sweep that changes none.
class Lasso {
 public:
  /// Keeps a reference to the covariance. A sweep changes nothing if no step times its column's
  /// standard deviation exceeds `tolerance` times that of the effect.
  Lasso(const Matrix& covariance, int64_t effect, std::vector<int64_t> causes,
        double tolerance = 1e-7);

  /// The coefficients, one per cause.
  const Vector& solve(const Vector& l1);
  const Vector& coefficients() const { return coefficients_; }

  /// The variance that the coefficients do not explain.
  double variance() const;

 private:
  bool sweep(const Vector& l1, bool all);

  const Matrix& covariance_;
  int64_t effect_;
  double least_step_;
  std::vector<int64_t> causes_;
  Vector coefficients_;
  Vector left_;  // covariances of the causes with the residual of the effect
};

/// Symmetric flags [M, M]: whether the l1 regression of one of two columns on all others selects
/// the other. The regression of a column needs all its causes and effects, and the other causes of
/// its effects. So a graph is searched among few edges and not M^2.
///
/// The penalty of a column is its residual standard deviation times those of the causes times
/// sqrt(log M / n) / 2. It is found together with the coefficients (scaled lasso), so that units
/// and noise variances do not matter. Complexity: O(M) per coordinate that moves, M regressions.
///
/// With fewer than two rows per column, a regression has only the n / log n columns that correlate
/// most with its column (sure independence screening). The regression then takes no longer with more
/// columns, and a neighbour is lost only if others hide its correlation.
///
/// `stop` is asked before each column; once it is true, the remaining columns select nothing.
///
/// Sources: Meinshausen, Buehlmann, "High-dimensional graphs and variable selection with the
/// lasso", Annals of Statistics 2006; Sun, Zhang, "Scaled sparse linear regression", Biometrika
/// 2012; Fan, Lv, "Sure independence screening for ultrahigh dimensional feature space", JRSS B 2008.
std::vector<char> neighbourhoods(const Covariance& covariance,
                                 const std::function<void()>& checkpoint,
                                 const std::function<bool()>& stop = {});

}  // namespace nsimplex::causal

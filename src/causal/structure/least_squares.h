#pragma once

#include <vector>

#include "causal/structure/candidate_edges.h"

namespace nsimplex::causal {

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

}  // namespace nsimplex::causal

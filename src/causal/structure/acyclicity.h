#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

// Functions of a weighted graph A that are 0 where it has no cycle and positive where it has one,
// with their gradients dh / dA_ij.

/// h_s(A) = -log det(s I - A o A) + M log s on the matrices whose A o A has a spectral radius below
/// s; +infinity outside. dh/dA = 2 A o (s I - A o A)^-T. Complexity: O(M^3), one inverse.
///
/// Source: Bello, Aragam, Ravikumar, "DAGMA: learning DAGs via M-matrices and a log-determinant
/// acyclicity characterization", NeurIPS 2022, theorem 1.
double log_det_acyclicity(const Matrix& weights, double s, Matrix& gradient);

/// h(A) = tr exp(A o A) - M, dh/dA = 2 A o exp(A o A)^T. Complexity: O(M^3), some ten products.
///
/// Source: Zheng, Aragam, Ravikumar, Xing, "DAGs with NO TEARS", NeurIPS 2018, theorem 1.
double trace_exponential_acyclicity(const Matrix& weights, Matrix& gradient);

}  // namespace nsimplex::causal

#pragma once

#include <Eigen/Dense>
#include <Eigen/SparseCore>

namespace nsimplex::graph {

using SparseMatrix = Eigen::SparseMatrix<double>;

/// Eigenvalues, ascending, and a unit vector each.
struct Eigenpairs {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;  ///< [n, count]
};

/// Up to this many rows, all eigenpairs are computed at once: O(n^3).
inline constexpr int64_t kDenseRows = 256;

/// The `count` lowest eigenpairs of a symmetric matrix with eigenvalues in [0, highest], each as
/// often as it is repeated.
///
/// Small matrices, and where more than half the spectrum is asked for: all of it. Larger ones are
/// factorised sparsely and iterated on (shift and invert) while the factor stays thin, as for
/// chains, trees and meshes; where it does not, as for random graphs, which have a spectral gap
/// instead, the matrix itself is iterated on. Throws std::runtime_error where nothing converges.
Eigenpairs lowest_eigenpairs(const SparseMatrix& matrix, int64_t count, double highest);

/// The second lowest eigenvalue of a symmetric matrix with eigenvalues in [0, highest], of which
/// one at most is 0, to 1e-12 of itself or 1e-15; rows >= 2.
///
/// As lowest_eigenpairs(), but of large matrices with a thin factor it is found by bisection: how
/// many eigenvalues lie below a number is read off a factor, however close they are to each other.
double second_eigenvalue(const SparseMatrix& matrix, double highest);

}  // namespace nsimplex::graph

// Declares the lowest eigenpairs of a sparse symmetric matrix.

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

/// The `count` lowest eigenpairs of a symmetric matrix with eigenvalues in [0, highest], counted
/// with multiplicity.
///
/// For small matrices, or if more than half the spectrum is requested, all eigenpairs are computed.
/// Larger matrices are factorised sparsely and iterated on (shift and invert) while the factor
/// stays thin, as for chains, trees and meshes. Otherwise, as for random graphs, which have a
/// spectral gap, the iteration uses the matrix itself. Throws std::runtime_error if nothing
/// converges.
Eigenpairs lowest_eigenpairs(const SparseMatrix& matrix, int64_t count, double highest);

/// The second lowest eigenvalue of a symmetric matrix with eigenvalues in [0, highest]. At most
/// one of them is 0. The error is 1e-12 relative or 1e-15 absolute; rows >= 2.
///
/// Like lowest_eigenpairs(), but for large matrices with a thin factor it uses bisection: a factor
/// tells how many eigenvalues lie below a number, however close they are to each other.
double second_eigenvalue(const SparseMatrix& matrix, double highest);

}  // namespace nsimplex::graph

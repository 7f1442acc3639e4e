#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Replaces a Z-matrix (nothing positive beside its diagonal) by its inverse and adds log |det| to
/// `log_det`. False, with the matrix spoiled, where it is no M-matrix, that is where s I - B, B >=
/// 0, has s not above the spectral radius of B.
///
/// An M-matrix needs no pivoting, and all pivots of the elimination without it are positive exactly
/// where a Z-matrix is one. Blocks of halves, so that nearly all of the O(M^3) is matrix products.
///
/// Source: Berman, Plemmons, "Nonnegative matrices in the mathematical sciences", theorem 6.2.3.
[[nodiscard]] bool invert_m_matrix(Eigen::Ref<Matrix> matrix, double& log_det);

}  // namespace nsimplex::causal

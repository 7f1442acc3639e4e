#pragma once

#include <cstdint>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// [n, k] orthonormal columns that span the cubic splines of a variable whose values are given, but
/// for the constant: knots at its quantiles, k = intervals + 2, fewer where it has few different
/// values. The mean of every column is 0.
///
/// Complexity: O(n k^2 + n log n).
Eigen::MatrixXd spline_basis(const Vector& values, int64_t intervals);

}  // namespace nsimplex::causal

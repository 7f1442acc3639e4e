#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// exp(B) of a matrix without negative entries, by scaling and squaring a Taylor polynomial.
/// Nothing cancels in sums of numbers of one sign, so every entry, however small, has full relative
/// precision. Complexity: O(M^3 (5 + log2 of the largest row sum)).
Matrix exponential_of_nonnegative(const Matrix& matrix);

}  // namespace nsimplex::causal

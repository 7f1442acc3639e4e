#pragma once

#include "causal/structure/covariance.h"
#include "causal/structure/precedence.h"

namespace nsimplex::causal {

/// The causal order of a linear model whose noises have one variance: the next column is the one
/// whose variance given all placed columns is least. A cause then comes before its effects, whose
/// variance given anything but all their causes is larger than that of the noise.
///
/// The covariance of what is left, given what is placed, is a Schur complement; placing a column
/// takes one more rank off it. Complexity: O(M^3).
///
/// Source: Chen, Drton, Wang, "On causal discovery with an equal-variance assumption", Biometrika
/// 2019, algorithm 1 (top-down).
Order equal_variance_order(const Matrix& covariance, const Precedence& precedence);

}  // namespace nsimplex::causal

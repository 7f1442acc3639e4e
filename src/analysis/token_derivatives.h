#pragma once

#include "analysis/collapse.h"

namespace nsimplex::analysis {

/// The derivative of a head's output i with respect to token j, in the two parts that the proof of
/// Theorem 3.7 bounds (Lemmas C.1 and C.2), and that of the logits, B = sum_a prod_m (x W_K^(m))_a
/// / sqrt(d), which its second part goes through.
struct TokenDerivatives {
  at::Tensor values;   ///< weights held: [n, n, channels, channels] at [i, j, out, in]
  at::Tensor weights;  ///< values held, the same shape
  at::Tensor logits;   ///< of every tuple (i, k1, .., kN): [n^(N+1), n, channels]
};

/// No mask. O(n^(N+2) (N + channels) channels): for few tokens.
NSIMPLEX_API TokenDerivatives token_derivatives(const PureHead& head, const at::Tensor& tokens);

}  // namespace nsimplex::analysis

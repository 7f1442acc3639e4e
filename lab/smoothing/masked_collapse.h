// Declares the steps of the proofs on collapse under masks.

#pragma once

#include <vector>

#include "analysis/collapse.h"

namespace nsimplex::analysis {

/// The derivative of a head's output i with respect to token j, in the two parts that the proof of
/// Theorem 3.7 bounds (Lemmas C.1 and C.2), and the derivative of the logits B = sum_a prod_m (x
/// W_K^(m))_a / sqrt(d), which the second part contains.
struct TokenDerivatives {
  at::Tensor values;   ///< weights fixed: [n, n, channels, channels] at [i, j, out, in]
  at::Tensor weights;  ///< values fixed, the same shape
  at::Tensor logits;   ///< of every tuple (i, k1, .., kN): [n^(N+1), n, channels]
};

/// No mask. O(n^(N+2) (N + channels) channels), so use few tokens.
TokenDerivatives token_derivatives(const PureHead& head, const at::Tensor& tokens);

/// A stack of layers under one mask, in the setting of the theorems, with the quantities in their
/// assumptions.
struct MaskedStack {
  std::vector<at::Tensor> tokens;  ///< X^(0) .. X^(L), [n, d] each
  int64_t floor = 0;               ///< the first layer at the floor; L + 1 if none is
  double least_weight = 1;         ///< eps: the least weight of an admissible tuple in any layer
  double value_product = 0;        ///< max_t ||X^(t)||^(N-1) max ||W_V||^N, which must be at most 1
  double largest_norm = 0;         ///< max_t ||X^(t)||
  double largest_key_norm = 0;     ///< max ||W_K||_2

  /// The theorem's condition, with room for the rounding of 1 = ||identity||.
  bool assumption_holds() const { return value_product <= 1 + 1e-12; }
};

MaskedStack run_stack(const std::vector<PureHead>& layers, const at::Tensor& tokens,
                      const TupleMask& mask);

/// Both sides of an inequality at the point where it is closest to failing.
struct ClosestSides {
  double left = 0, right = 0;
  int64_t compared = 0;

  void add(double left, double right);
};

/// Steps of the proof of Theorem 3.4 of "How Smoothing is N-simplicial Attention?" (appendix B), on
/// a stack after its run. For column j, M_j^(t) is the largest entry, m_j^(t) the smallest entry of
/// this and all later layers minus eps, and X_cj = rho m_j + (1 - rho) M_j for the centre c.
///
///     theorem  M_j^(t+r) - m_j^(t+r) <= (1 - rho eps^r) (M_j^(t) - m_j^(t))
///     lemma    X_cj^(t+T) - m_j^(t) <= (1 - rho eps^T) (M_j^(t) - m_j^(t)), T = 1 .. r  (B.1)
///
/// Each is over all t and j before the floor, separately for columns with M_j^(t) >= 0 and with
/// M_j^(t) < 0. For the latter the proof's X_cj <= A X_cj + (1 - A) M_j is doubtful.
struct MaskedSteps {
  ClosestSides theorem[2], lemma[2];  ///< [M_j < 0]
};

/// `centre` is in a simplex as its target and a source; its eccentricity `radius` is above 0.
MaskedSteps masked_steps(const MaskedStack& stack, int64_t centre, int64_t radius);

}  // namespace nsimplex::analysis

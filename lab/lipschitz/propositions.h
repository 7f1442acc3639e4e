// Declares tests of published propositions on the derivatives of attention.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/ascent.h"
#include "analysis/statement.h"

namespace nsimplex::analysis {

/// N-simplicial attention as in the theorems of "How Smoothing is N-simplicial Attention?":
/// softmax, product form and values, s1 = d^-1/2, s2 = 1, one head, no skip connection and no
/// output projection. Every problem has its own weights.
struct ProjectedAttention {
  Tensors keys;    ///< W_K^(m), m = 0..N, the query's first: [B, C, d]
  Tensors values;  ///< W_V^(m), m = 1..N: [B, C, d]

  int64_t order() const { return std::ssize(values); }

  /// x [B, n, C] -> [B, n, d].
  at::Tensor operator()(const at::Tensor& x) const;
};

/// Normal weights (torch's generator, double), each scaled to exactly these spectral norms.
ProjectedAttention random_attention(int64_t order, int64_t problems, int64_t dim, double key_norm,
                                    double value_norm);

struct PropositionOptions {
  int64_t order = 2, dim = 4, tokens = 3;
  int64_t draws = 1000;
};

/// Tests the intermediate results of Cesista, "Sensitivity and Sharpness of n-Simplicial
/// Attention", on random draws (torch's generator) of rows with unit root mean square: Proposition
/// 5, Lemma 6, the three inequalities of Proposition 8, |Bx| <= |B| |x|, and the bounds on dV, dK,
/// dA, d2V and d2A with the scales of Scale::unit. It also tests the printed formulas of d2A and
/// d2V, which are right for N = 1 only, and d2A with the missing term.
std::vector<Statement> test_propositions(const PropositionOptions& options);

}  // namespace nsimplex::analysis

#pragma once

#include <nsimplex/export.h>

#include <cstdint>

#include "analysis/directional.h"

namespace nsimplex::analysis {

/// N-simplicial attention as the theorems of "How Smoothing is N-simplicial Attention?" have it:
/// softmax, product form and values, s1 = d^-1/2, s2 = 1, one head, no skip and no output
/// projection. Every problem has weights of its own.
struct ProjectedAttention {
  Tensors keys;    ///< W_K^(m), m = 0..N, the query's first: [B, C, d]
  Tensors values;  ///< W_V^(m), m = 1..N: [B, C, d]

  int64_t order() const { return std::ssize(values); }

  /// x [B, n, C] -> [B, n, d].
  NSIMPLEX_API at::Tensor operator()(const at::Tensor& x) const;
};

/// Normal weights (torch's generator, double), each scaled to exactly these spectral norms.
NSIMPLEX_API ProjectedAttention random_attention(int64_t order, int64_t problems, int64_t dim,
                                                 double key_norm, double value_norm);

}  // namespace nsimplex::analysis

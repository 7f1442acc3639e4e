// Declares attention with all its tuples stored, for statements about its derivatives.

#pragma once

#include "analysis/ascent.h"

namespace nsimplex::analysis {

/// Attention with all its tuples stored, for statements about its parts. Queries are [B, T, D], and
/// the N keys have the same shape. K and its derivatives are [B, T^N, D], weights A [B, T, T^N].
struct WrittenOut {
  int64_t order = 1;
  double logit_scale = 1;

  /// Elementwise product over the tuples with one row of each of `rows`.
  static at::Tensor products(const Tensors& rows);

  /// A(q, k_1.., k_N).
  at::Tensor weights(const Tensors& inputs) const;

  /// The second derivative of A along a and b as [L] prints it, without the term that contains the
  /// second derivative of K; and that missing term: s1 A_iJ <q_i, [A, d2K]_iJ>.
  at::Tensor printed_second(const Tensors& inputs, const Tensors& a, const Tensors& b) const;
  at::Tensor missing_second(const Tensors& inputs, const Tensors& a, const Tensors& b) const;
};

}  // namespace nsimplex::analysis

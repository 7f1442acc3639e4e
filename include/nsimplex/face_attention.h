#pragma once

#include <nsimplex/attention.h>

namespace nsimplex {

/// Attention with one softmax a face: the tuples that share a query and their first N-1 keys.
///
///     e_iJ  = s1 form(q_i, k1_{j1}, .., kN_{jN})
///     A_iJ  = softmax over jN of e_iJ, for every face (i, j1, .., j_{N-1})
///     o_i   = s2 / F_i sum_J A_iJ reduce(v1_{j1}, .., vN_{jN})
///     lse   = log sum over jN of exp(e_iJ), one a face
///
/// with lse [B, Hq, Tq, T_1, .., T_{N-1}] and F_i the number of faces of query i that have an
/// admissible jN. A query without any has o_i = 0; a face without any has lse = -inf and no part in
/// the mean. For N = 1 this is attention().
///
/// Shapes, dtypes and options are those of attention() with normalizer = softmax, without augment.
/// Both outputs are differentiable, any number of times; made of ATen calls, so that a forward
/// without gradients takes O(T D) memory besides lse, and one with gradients keeps the tuples.
///
/// Complexity: 2 (D + Dv) flops for every query, head and admissible tuple.
///
/// Errors: c10::ValueError for other normalisers or augment, and those of attention().
///
/// Source: Pappone, "Beyond Attention as a Graph" (2025).
NSIMPLEX_API AttentionOutput face_attention(const at::Tensor& query, at::TensorList keys,
                                            at::TensorList values,
                                            const AttentionOptions& options = {});

}  // namespace nsimplex

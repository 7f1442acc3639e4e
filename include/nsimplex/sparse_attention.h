// N-simplicial attention over chosen tuples.

#pragma once

#include <nsimplex/attention.h>

#include <vector>

namespace nsimplex {

/// The meaning of `indices` and `offsets` of sparse_attention(). There are G lists per batch entry.
/// G = 1 is shared by all heads. If G is the number of key heads, each has its own. Otherwise G
/// divides the key heads, and neighbouring heads share a list. The leading dimension is B, or 1 for
/// lists shared by the batch.
enum class TuplePattern {
  /// Any tuples. indices [nnz, N]: tuple t is (j1, .., jN) = indices[t]. offsets int64 [1 | B, G,
  /// Tq + 1]: the tuples of query i are those from offsets[.., i] to offsets[.., i + 1]. These
  /// positions refer to all of indices, so lists may share tuples.
  list,
  /// Every combination of one set of keys. indices [1 | B, G, Tq, k]: the tuples of query i are I_i
  /// x .. x I_i with I_i = indices[.., i, :], padded with -1 after its keys.
  product,
  /// Chains. indices [1 | B, G, T, k], all T_m = T: the tuples of a query at position p have j1 in
  /// I_p, j2 in I_{j1}, .., jN in I_{j_{N-1}}. The queries are the last Tq of the T positions.
  path
};

/// How the values of a tuple are combined. The first three are those of Reduce; the others are
/// learned, with weights for every key head (W: matrices applied to channels, b: biases):
///
///     mlp            W2 gelu(W1 [v1, .., vN] + b1) + b2                      W1, b1, W2, b2
///     mlp_symmetric  W3 gelu(W2 sum_m gelu(W1 vm + b1) + b2) + b3    W1, b1, W2, b2, W3, b3
///
/// Hidden layers have 2 Dv channels, so mlp has weights [Hk, 2Dv, N Dv], [Hk, 2Dv], [Hk, Dv, 2Dv],
/// [Hk, Dv], and mlp_symmetric [Hk, 2Dv, Dv], [Hk, 2Dv], [Hk, 2Dv, 2Dv], [Hk, 2Dv], [Hk, Dv, 2Dv],
/// [Hk, Dv]. gelu is the exact one.
enum class TupleReduce { product, sum, mean, mlp, mlp_symmetric };

struct SparseAttentionOptions {
  TuplePattern pattern = TuplePattern::list;
  Form form = Form::product;
  TupleReduce reduce = TupleReduce::product;
  std::vector<at::Tensor> reducer_weights;  ///< of a learned reducer; differentiable
  std::optional<Scale> scale;               ///< absent: Scale::standard
  Layout layout = Layout::bhtd;             ///< of query, keys, values and out
};

/// N-simplicial attention over the tuples that a list names, instead of all admissible ones.
///
///     e_iJ  = s1 form(q_i, k1_{j1}, .., kN_{jN})            J = (j1, .., jN) in the list of i
///     o_i   = s2 sum_J softmax_J(e_iJ) reduce(v1_{j1}, .., vN_{jN})
///     lse_i = log sum_J exp(e_iJ)
///
/// The result equals attention() with a boolean mask that is true for the same tuples. Only the
/// list counts: there is no causal mask here, but a list without later keys is causal. A tuple that
/// is listed twice counts twice.
///
/// Shapes: query [B, Hq, Tq, D]; keys N of [B, Hk, T_m, D]; values N of [B, Hk, T_m, Dv], N <= 8;
/// indices and offsets as TuplePattern says, int32 or int64. dtypes of the other tensors: float32,
/// float64, bfloat16, float16; accumulation and lse are never below float32.
///
/// A query without tuples has out = 0, lse = -inf and zero gradients. Both outputs are
/// differentiable in query, keys, values and reducer weights, any number of times. Results do not
/// depend on the number of threads.
///
/// Complexity: O(#tuples (D + Dv)) operations for N = 2, less than N times that for larger N, and
/// three times as many backward. O(T (D + Dv)) memory besides the list. The CPU runs SIMD kernels.
/// Learned reducers, other devices and second derivatives run ATen calls, chunk by chunk, with the
/// tuples of a chunk in memory.
///
/// Errors: c10::ValueError or c10::TypeError. The message is one line that names the argument, the
/// expectation and the value. On the CPU, offsets that fall or leave the list and keys out of range
/// are refused, so no list can cause a read out of bounds.
///
/// Sources: lists and paths: "How Smoothing is N-simplicial Attention?", section 2.3; products of
/// top-k sets and the learned reducer: Pappone, "Beyond Attention as a Graph"; product form: Clift
/// et al., arXiv 1909.00668.
NSIMPLEX_API AttentionOutput
sparse_attention(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                 const at::Tensor& indices, const std::optional<at::Tensor>& offsets = std::nullopt,
                 const SparseAttentionOptions& options = {});

/// The same function from plain ATen calls, for any dtype and device.
NSIMPLEX_API AttentionOutput sparse_attention_reference(
    const at::Tensor& query, at::TensorList keys, at::TensorList values, const at::Tensor& indices,
    const std::optional<at::Tensor>& offsets = std::nullopt,
    const SparseAttentionOptions& options = {});

/// The number of tuples of a call, over batch entries, query heads and queries. The flops are
/// 2 (D + Dv) per tuple forward and three times that backward. O(size of the list).
NSIMPLEX_API double sparse_attention_tuples(const at::Tensor& query, at::TensorList keys,
                                            at::TensorList values, const at::Tensor& indices,
                                            const std::optional<at::Tensor>& offsets = std::nullopt,
                                            const SparseAttentionOptions& options = {});

}  // namespace nsimplex

#pragma once

#include <nsimplex/attention.h>

namespace nsimplex {

/// Elements that attention_weights() agrees to return: 256 MiB in float32.
inline constexpr int64_t kMaxAttentionWeights = int64_t{1} << 26;

/// The weight of every tuple, for small problems: [B, Hq, Tq, T_1, .., T_N], float32, or float64
/// for float64 inputs; 0 where a tuple is inadmissible.
///
/// Takes the options of attention() but augment; reduce and the output scale have no part in it.
/// With dropout these are the weights after it. Made of ATen calls and differentiable through them,
/// any number of times: memory is a few times the result.
///
/// Errors: c10::ValueError above kMaxAttentionWeights elements, and those of attention().
NSIMPLEX_API at::Tensor attention_weights(const at::Tensor& query, at::TensorList keys,
                                          const AttentionOptions& options = {});

/// The weight that a query puts on each key of one axis, summed over the other axes:
/// [B, Hq, Tq, T_axis] in the query's dtype.
///
/// It is attention() with reduce = sum, unit vectors as the values of that axis and zeros as the
/// others, so no tuple is stored, and every option and derivative is the operator's. reduce and the
/// output scale of `options` are not used. Cost: that call, with Dv = T_axis.
NSIMPLEX_API at::Tensor attention_marginals(const at::Tensor& query, at::TensorList keys,
                                            int64_t axis, const AttentionOptions& options = {});

/// The weight that each key of one axis receives, summed over the other axes, all queries and the
/// query heads of its group: [B, Hk, T_axis] in the query's dtype.
///
/// It is the gradient of that axis' values in attention() with reduce = sum and Dv = 1: one forward
/// and one backward, memory O(T). Differentiable, through the reference.
NSIMPLEX_API at::Tensor attention_received(const at::Tensor& query, at::TensorList keys,
                                           int64_t axis, const AttentionOptions& options = {});

}  // namespace nsimplex

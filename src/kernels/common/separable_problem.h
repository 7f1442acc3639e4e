// A separable attention call as plain structs.

#pragma once

#include "kernels/common/attention_problem.h"

// Plain description of one separable (linear-time) N-simplicial attention call. No ownership;
// strides are in elements, channels are contiguous, as in attention_problem.h. T: double or float.
//
//     num_i = sum_r q_i[r] prod_m (sum_{j in A_m(i)} k^m_j[r] v^m_j)     products over channels
//     den_i = sum_r q_i[r] prod_m (sum_{j in A_m(i)} k^m_j[r])
//     o_i   = num_i / den_i, or 0 where den_i = 0
//
// A_m(i) is the interval of the axis' Visibility. Only its window, offset and causal are used here.

namespace nsimplex::kernels {

template <class T>
struct SeparableAxis {
  Rows<const T> key, value;  ///< features [batch, kv_heads, length, features]; value_dim channels
  Visibility visible;

  /// A_m(query), always with begin <= end. From one query to the next, neither end decreases.
  Range keys(int64_t query) const {
    const int64_t position = query + visible.offset, length = visible.length;
    const int64_t right = visible.causal ? 0 : visible.right;
    const int64_t begin = visible.left < 0 ? 0 : position - visible.left + 1;
    const int64_t end = right < 0 ? length : position + right + 1;
    return {std::clamp<int64_t>(begin, 0, length), std::clamp<int64_t>(end, 0, length)};
  }

  /// Whether keys leave the window as queries advance. An axis without this only gathers them.
  bool sliding() const { return visible.left >= 0; }
};

template <class T>
struct SeparableProblem {
  int order = 1;
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, features = 0, value_dim = 0;
  Rows<const T> query;  ///< features [batch, heads, queries, features]
  SeparableAxis<T> axes[kMaxOrder];
};

template <class T>
struct SeparableForward : SeparableProblem<T> {
  Rows<T> out;              ///< [batch, heads, queries, value_dim]
  T* normalizer = nullptr;  ///< den, [batch, heads, queries], contiguous
};

template <class T>
struct SeparableBackward : SeparableProblem<T> {
  /// The results of the forward, and their gradients.
  Rows<const T> out, grad_out;
  const T* normalizer = nullptr;
  const T* grad_normalizer = nullptr;  ///< as normalizer, or null: zero
  /// Outputs. Gradients of values are partial sums, one array [batch, kv_heads, length, value_dim]
  /// per slice of the plan, `slice_stride` apart.
  Rows<T> grad_query;
  Rows<T> grad_key[kMaxOrder], grad_value[kMaxOrder];
  int64_t slice_stride[kMaxOrder] = {};
};

}  // namespace nsimplex::kernels

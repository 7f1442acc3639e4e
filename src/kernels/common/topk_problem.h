// A search for the k best keys of every query as a plain struct.

#pragma once

#include <cstdint>

#include "kernels/common/attention_problem.h"

namespace nsimplex::kernels {

/// The k best keys of every query, by scores summed over heads. Strides are in elements, channels
/// are contiguous; R is float or double.
///
///     logit_hij = logit_scale <query_hi, key_j>
///     score_ij  = sum_h weight_hi act(logit_hij)       act = max(., 0), or exp(. - lse_hi)
template <class R>
struct TopkProblem {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, dim = 0;
  int64_t k = 0;
  double logit_scale = 1.0;
  Rows<const R> query;              ///< [batch, heads, queries, dim]
  Rows<const R> key;                ///< [batch, kv_heads, visible.length, dim]
  Visibility visible;               ///< keys by position; neither end decreases
  const R* weights = nullptr;       ///< [batch, heads, queries], or null: ones
  const R* lse = nullptr;           ///< the same, or null: act is max(., 0)
  const bool* adjacency = nullptr;  ///< rows of visible.length flags, or null: all
  int64_t adjacency_batch_stride = 0, adjacency_query_stride = 0;

  /// [batch, queries, k], best first, ties to the lowest index; -1 and minus infinity after the
  /// last one. A score that is NaN or minus infinity is never chosen.
  int64_t* indices = nullptr;
  R* scores = nullptr;

  const bool* admissible(int64_t b, int64_t i) const {
    return adjacency ? adjacency + b * adjacency_batch_stride + i * adjacency_query_stride
                     : nullptr;
  }
};

}  // namespace nsimplex::kernels

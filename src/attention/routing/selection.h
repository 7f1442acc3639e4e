#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/routing.h>

#include <vector>

#include "attention/common/attention_call.h"
#include "kernels/common/attention_problem.h"

namespace nsimplex::routing {

/// The list of tuples given by columns, N of [nnz], whose owners, (batch entry, query) flattened,
/// never fall.
TupleList list_of_rows(std::vector<at::Tensor> columns, const at::Tensor& owner, int64_t batch,
                       int64_t queries);

/// Options of the dense operator for logits alone.
inline dense::Options plain_options(bool causal, std::string_view form,
                                    std::optional<double> logit_scale,
                                    OptionalTensorList key_masks = std::nullopt,
                                    const OptionalInt64& key_lengths = {},
                                    const OptionalTensor& mask = {}) {
  return {.causal = causal,
          .form = form,
          .logit_scale = logit_scale,
          .key_lengths = key_lengths,
          .key_masks = key_masks,
          .mask = mask};
}

/// A table of keys with every row in ascending order, -1 behind.
at::Tensor sorted_table(const at::Tensor& table);

/// Queries that one chunk may have so that the gathered rows of `keys` keys each, for
/// [B, H, Tq, D], stay within a fixed number of elements.
int64_t gathered_chunk(const at::Tensor& query, int64_t keys);

/// Rows of key [B, Hk, T, D] by table [B, c, n]: [B, Hk, c, n, D]; row 0 stands for -1.
at::Tensor gather_rows(const at::Tensor& key, const at::Tensor& table);

/// <query_hi, key_j> for every j of query i's row: query [B, H, c, D], key [B, Hk, T, D], table
/// [B, c, n] -> [B, c, H, n]. Entries of -1 are logits of key 0.
at::Tensor gathered_logits(const at::Tensor& query, const at::Tensor& key, const at::Tensor& table);

/// The best of what has been seen, per row.
class RunningBest {
 public:
  /// Keeps `count` of the entries with the highest scores [rows.., n]; of equals those with the
  /// lowest index. NaN and -inf are never kept.
  explicit RunningBest(int64_t count) : count_(count) {}

  /// scores [.., n] with the indices of their columns, int64, broadcastable to it.
  void add(const at::Tensor& scores, const at::Tensor& indices);

  /// Indices and scores [.., count], best first; -1 and -inf behind the last. Something was added.
  std::pair<at::Tensor, at::Tensor> finish() const;

 private:
  int64_t count_;
  at::Tensor scores_, indices_;
};

/// What makes one score of the logits of all heads: sum_h weight_h act(logit_h).
struct Scoring {
  at::Tensor weights;  ///< [B, H, Tq], or undefined: ones
  at::Tensor lse;      ///< [B, H, Tq]: act = exp(logit - lse); undefined: act = max(logit, 0)
};

/// act(logits), a head without admissible keys giving nothing. `lse` broadcasts to logits.
at::Tensor activate(const at::Tensor& logits, const at::Tensor& lse);

/// The best `count` tuples of every query, (indices, scores) [B, Tq, count]; a tuple's index counts
/// all tuples in lexicographic order. Tile by tile, from the terms of the dense reference: a
/// checked call, whose values, normalizer and dropout have no part.
std::pair<at::Tensor, at::Tensor> best_tuples(const dense::Call& call, int64_t count,
                                              const Scoring& scoring);

}  // namespace nsimplex::routing

#pragma once

#include "attention/dense/dense_call.h"

namespace nsimplex::routing {

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

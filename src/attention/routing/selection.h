// Declares helpers for lists of tuples and tables of keys that the routing operators share.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/routing.h>

#include <vector>

#include "attention/common/attention_call.h"
#include "kernels/common/attention_problem.h"

namespace nsimplex::routing {

/// The list of tuples with columns N of [nnz]. The owners, flattened (batch entry, query), must not
/// decrease.
TupleList list_of_rows(std::vector<at::Tensor> columns, const at::Tensor& owner, int64_t batch,
                       int64_t queries);

/// Options of the dense operator for logits only.
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

/// A table of keys with every row in ascending order, and -1 at its end.
at::Tensor sorted_table(const at::Tensor& table);

/// The largest number of queries per chunk for which the gathered rows of `keys` keys each, for [B,
/// H, Tq, D], stay within a fixed number of elements.
int64_t gathered_chunk(const at::Tensor& query, int64_t keys);

/// The rows of key [B, Hk, T, D] at table [B, c, n]: [B, Hk, c, n, D]. Row 0 replaces -1.
at::Tensor gather_rows(const at::Tensor& key, const at::Tensor& table);

/// <query_hi, key_j> for every j in the row of query i: query [B, H, c, D], key [B, Hk, T, D],
/// table [B, c, n] -> [B, c, H, n]. Entries of -1 give logits of key 0.
at::Tensor gathered_logits(const at::Tensor& query, const at::Tensor& key, const at::Tensor& table);

/// The best entries so far, per row.
class RunningBest {
 public:
  /// Keeps `count` of the entries with the highest scores [rows.., n]. Of equal scores, those with
  /// the lowest index are kept. NaN and -inf are never kept.
  explicit RunningBest(int64_t count) : count_(count) {}

  /// scores [.., n], with the int64 indices of their columns, which broadcast to them.
  void add(const at::Tensor& scores, const at::Tensor& indices);

  /// Indices and scores [.., count], the best first, with -1 and -inf at the end. Requires a call
  /// of add().
  std::pair<at::Tensor, at::Tensor> finish() const;

 private:
  int64_t count_;
  at::Tensor scores_, indices_;
};

/// How the logits of all heads become one score: sum_h weight_h act(logit_h).
struct Scoring {
  at::Tensor weights;  ///< [B, H, Tq]; undefined: ones
  at::Tensor lse;      ///< [B, H, Tq]: act = exp(logit - lse); undefined: act = max(logit, 0)
};

/// act(logits). A head without admissible keys contributes 0. `lse` broadcasts to logits.
at::Tensor activate(const at::Tensor& logits, const at::Tensor& lse);

/// The best `count` tuples of every query, (indices, scores) [B, Tq, count]. The index of a tuple
/// counts all tuples in lexicographic order. It is computed tile by tile from the logits of the
/// dense reference. The call must be checked; its values, normalizer and dropout are ignored.
std::pair<at::Tensor, at::Tensor> best_tuples(const dense::Call& call, int64_t count,
                                              const Scoring& scoring);

}  // namespace nsimplex::routing

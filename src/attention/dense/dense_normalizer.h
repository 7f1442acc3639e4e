#pragma once

#include <utility>

#include "attention/dense/dense_terms.h"

// From logits x to weights, whatever the normaliser:
//
//   softmax       e^(x - lse)               lse = log sum e^x
//   softmax_sink  e^(x - lse)               lse = log(e^sink + sum e^x)
//   sigmoid       1 / (1 + e^-x)            lse = 0
//   relu          max(x, 0) e^-lse          lse = log sum max(x, 0)

namespace nsimplex::dense {

/// Sums over the tiles of a block of queries: partial results of disjoint sets of tuples merge
/// exactly.
class RowSums {
 public:
  explicit RowSums(const Problem& problem) : problem_(problem) {}

  void add(const TileTerms& terms);

  /// out [B, H, G, Q, Dv] and lse [B, H, G, Q]; 0 and -inf for rows without weights.
  std::pair<at::Tensor, at::Tensor> finish() const;

 private:
  bool exponential() const;

  const Problem& problem_;
  at::Tensor maximum_, sum_, weighted_;  ///< [B, H, G, Q], [B, H, G, Q], [B, H, G, Q, Dv]
};

/// Weights of a tile, [B, H, G, Q, L, K]; `lse` [B, H, G, Q] is finite, any number for empty rows.
at::Tensor weights_of(Normalizer normalizer, const at::Tensor& logits, const at::Tensor& lse);

/// The factor s of d(logit) = s (d(weight) - delta).
at::Tensor slope_of(Normalizer normalizer, const at::Tensor& logits, const at::Tensor& weights,
                    const at::Tensor& lse);

/// delta_i = o_i . grad_out_i - grad_lse_i, [B, Hq, Tq]; a row without tuples has no weights and
/// gets 0.
at::Tensor delta_of(const at::Tensor& out, const at::Tensor& lse, const at::Tensor& grad_out,
                    const OptionalTensor& grad_lse);

/// Gradient of the call's sink, which is one more tuple of value 0.
at::Tensor grad_sink(const BackwardCall& call);

/// Whether a tuple's weight depends on the others, through delta = out . grad_out - grad_lse.
inline bool normalized(Normalizer normalizer) { return normalizer != Normalizer::sigmoid; }

}  // namespace nsimplex::dense

#pragma once

#include <utility>

#include "attention/common/attention_terms.h"

// From logits x to weights, whatever the normaliser:
//
//   softmax       e^(x - lse)               lse = log sum e^x
//   softmax_sink  e^(x - lse)               lse = log(e^sink + sum e^x)
//   sigmoid       1 / (1 + e^-x)            lse = 0
//   relu          max(x, 0) e^-lse          lse = log sum max(x, 0)
//
// A large lse has no digits left for the logarithm of a sum: fp32 counts in 64 at 1e9. So weights
// are made from two numbers a row, the maximum of the logits and the logarithm of what is left of
// them.

namespace nsimplex::dense {

/// What the weights of rows are made from: e^(x - maximum - log_sum), [B, H, G, Q] both.
struct RowNorm {
  at::Tensor maximum;  ///< finite, without gradients; undefined for sigmoid and relu
  at::Tensor log_sum;  ///< undefined: 0

  /// maximum + log_sum, in the type of weights.
  at::Tensor lse() const;
  /// Of some neighbouring queries.
  RowNorm part(int64_t first, int64_t count) const;
  /// The type of weights.
  at::ScalarType type() const { return (log_sum.defined() ? log_sum : maximum).scalar_type(); }
};

/// The same with the gradient of `lse`, [B, H, G, Q], which is that of `own` but for its rounding;
/// or that of more tuples, and then the weights are fractions of the larger sum.
RowNorm with_lse(const RowNorm& own, const at::Tensor& lse);

/// Whether some row's weights may need a norm of their own, and not lse alone. Looks at values
/// where there are some to look at.
bool may_be_large(const at::Tensor& lse);

/// Sums over the tiles of a block of queries: partial results of disjoint sets of tuples merge
/// exactly.
class RowSums {
 public:
  explicit RowSums(const Problem& problem) : problem_(problem) {}

  /// Without values there is only a norm in the end.
  void add(const TileTerms& terms, bool values = true);

  /// out [B, H, G, Q, Dv] and lse [B, H, G, Q]; 0 and -inf for rows without weights.
  std::pair<at::Tensor, at::Tensor> finish() const;

  /// Any finite numbers for rows without weights.
  RowNorm norm() const;

 private:
  at::Tensor empty() const;

  const Problem& problem_;
  at::Tensor maximum_, sum_, weighted_;  ///< [B, H, G, Q], [B, H, G, Q], [B, H, G, Q, Dv]
};

/// Weights of a tile, [B, H, G, Q, L, K].
at::Tensor weights_of(Normalizer normalizer, const at::Tensor& logits, const RowNorm& norm);

/// The factor s of d(logit) = s (d(weight) - delta).
at::Tensor slope_of(Normalizer normalizer, const at::Tensor& logits, const at::Tensor& weights,
                    const RowNorm& norm);

/// delta_i = o_i . grad_out_i - grad_lse_i, [B, Hq, Tq]; a row without tuples has no weights and
/// gets 0.
at::Tensor delta_of(const at::Tensor& out, const at::Tensor& lse, const at::Tensor& grad_out,
                    const OptionalTensor& grad_lse);

/// Gradient of the call's sink, which is one more tuple of value 0; `norm` is that of all rows.
at::Tensor grad_sink(const BackwardCall& call, const RowNorm& norm);

/// Whether weights are exponentials over a common sum.
inline bool exponential(Normalizer normalizer) {
  return normalizer == Normalizer::softmax || normalizer == Normalizer::softmax_sink;
}

/// Whether a tuple's weight depends on the others, through delta = out . grad_out - grad_lse.
inline bool normalized(Normalizer normalizer) { return normalizer != Normalizer::sigmoid; }

}  // namespace nsimplex::dense

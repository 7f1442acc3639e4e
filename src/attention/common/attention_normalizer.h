// Declares the weights that every normaliser makes of logits.

#pragma once

#include <utility>

#include "attention/common/attention_terms.h"

// From logits x to weights, for every normaliser:
//
//   softmax       e^(x - lse)               lse = log sum e^x
//   softmax_sink  e^(x - lse)               lse = log(e^sink + sum e^x)
//   sigmoid       1 / (1 + e^-x)            lse = 0
//   relu          max(x, 0) e^-lse          lse = log sum max(x, 0)
//
// A large lse has no digits left for the logarithm of a sum: near 1e9, numbers in fp32 are 64
// apart. So weights are computed from two numbers per row, the maximum of the logits and the
// logarithm of the remaining sum.

namespace nsimplex::dense {

/// The numbers from which the weights of rows are computed: e^(x - maximum - log_sum), [B, H, G, Q]
/// both.
struct RowNorm {
  at::Tensor maximum;  ///< finite, without gradients; undefined for sigmoid and relu
  at::Tensor log_sum;  ///< undefined: 0

  /// maximum + log_sum, in the type of weights.
  at::Tensor lse() const;
  /// The part for some consecutive queries.
  RowNorm part(int64_t first, int64_t count) const;
  /// The type of weights.
  at::ScalarType type() const { return (log_sum.defined() ? log_sum : maximum).scalar_type(); }
};

/// The same with the gradient of `lse`, [B, H, G, Q], which equals that of `own` up to rounding. It
/// may also be the lse of more tuples; weights are then fractions of the larger sum.
RowNorm with_lse(const RowNorm& own, const at::Tensor& lse);

/// Whether the weights of some row may need a norm of their own, and not lse alone. It reads values
/// if there are any.
bool may_be_large(const at::Tensor& lse);

/// Sums over the tiles of a block of queries. Partial results of disjoint sets of tuples merge
/// exactly.
class RowSums {
 public:
  explicit RowSums(const Problem& problem) : problem_(problem) {}

  /// Without values, only the norm is computed.
  void add(const TileTerms& terms, bool values = true);

  /// out [B, H, G, Q, Dv] and lse [B, H, G, Q]; 0 and -inf for rows without weights.
  std::pair<at::Tensor, at::Tensor> finish() const;

  /// The norm. It has arbitrary finite numbers for rows without weights.
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

/// The shared normaliser's term in the gradients of logits: delta, and grad_lse if there is one. An
/// out of 16 bits leaves its rounding in delta. A tuple with all of a row's weight would have nothing
/// else in d(weight) - delta: it gets grad_lse instead, so that a query with one tuple has no
/// gradient.
struct DeltaTerm {
  DeltaTerm(const at::Tensor& out, const at::Tensor& lse, const at::Tensor& grad_out,
            const OptionalTensor& grad_lse);

  /// With both tensors as `change` makes them of rows [B, Hq, Tq].
  template <class Change>
  DeltaTerm by(Change&& change) const {
    DeltaTerm result(*this);
    result.delta = change(delta);
    if (grad_lse.defined()) result.grad_lse = change(grad_lse);
    return result;
  }

  /// d(weight) - delta of tuples with these weights; all in one shape but for sizes of 1.
  at::Tensor less_delta(const at::Tensor& grad_weights, const at::Tensor& weights) const;

  at::Tensor delta, grad_lse;
  bool rounded;
};

/// Gradient of the call's sink, which is one more tuple of value 0; `norm` is that of all rows.
at::Tensor grad_sink(const BackwardCall& call, const RowNorm& norm);

/// Whether weights are exponentials over a common sum.
inline bool exponential(Normalizer normalizer) {
  return normalizer == Normalizer::softmax || normalizer == Normalizer::softmax_sink;
}

/// Whether a tuple's weight depends on the others, through delta = out . grad_out - grad_lse.
inline bool normalized(Normalizer normalizer) { return normalizer != Normalizer::sigmoid; }

}  // namespace nsimplex::dense

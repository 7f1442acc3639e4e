// Declares the formula of attention on one tile, for the reference.

#pragma once

#include <vector>

#include "attention/common/attention_channels.h"
#include "attention/common/attention_mask.h"
#include "attention/common/attention_tiles.h"

namespace nsimplex::dense {

/// Dropout of whole tuples by the hash of kernels/common/tuple_hash.h, with ATen calls.
class Dropout {
 public:
  Dropout(const Call& call, const Settings& settings);

  bool active() const { return settings_.dropout_p > 0; }

  /// keep / (1 - p), [B, H, G, Q, L, K].
  at::Tensor factors(const Tile& tile, at::ScalarType type) const;

 private:
  const Settings& settings_;
  at::Tensor rows_;               ///< hash of each row, int64 [B, H, G, Tq]
  std::vector<at::Tensor> keys_;  ///< hash of each key, per axis: int64 [T_m]
};

}  // namespace nsimplex::dense

// The formula on one tile, in ATen calls, for the reference version.
//
// Names of dimensions: B batch, H key heads, G query heads of one key head, Q queries of the tile,
// L leading tuples (j_1 .. j_{N-1}) of the tile flattened, K keys of the last axis in the tile.

namespace nsimplex::dense {

/// The data of a call that all tiles share.
struct Problem {
  Settings settings;
  at::Tensor query;  ///< [B, H, G, Tq, D]
  at::TensorList keys, values;
  at::Tensor sink;    ///< [H, G, 1] in the accumulated dtype, or undefined
  at::Tensor slopes;  ///< of ALiBi, likewise
  at::ScalarType accumulate;
  /// The type of logits. It is wider with an additive mask, because a score could be lost in float.
  at::ScalarType logit_type;
  int64_t groups = 1;
  Admissible admissible;
  Dropout dropout;
  LeadingRows leading_keys, leading_values;

  explicit Problem(const Call& call);
  Problem(const Problem&) = delete;  // its members refer to its settings

  /// [B, H * G, ...] -> [B, H, G, ...]
  at::Tensor by_group(const at::Tensor& tensor) const;

  /// The factor of a tuple's combined values: s2, and for the mean 1/N.
  double output_scale() const;
};

/// The slices of one tile and the steps of the formula on them. It refers to the problem and the
/// tile.
class TileTerms {
 public:
  TileTerms(const Problem& problem, const Tile& tile);

  /// The part of a [B, H, G, Tq, ...] tensor for the queries of the tile, in the accumulated dtype.
  at::Tensor rows(const at::Tensor& tensor) const;

  /// s1 * form, with the soft cap, + biases and mask, or -inf if the tuple is inadmissible: [B, H, G, Q, L, K]
  /// in the type of logits.
  at::Tensor logits() const;

  /// The gradient of s1 * form, given that of the logits.
  at::Tensor before_softcap(const at::Tensor& grad_logits) const;

  /// The weights times keep / (1 - p) of the tuple if there is dropout.
  at::Tensor with_dropout(const at::Tensor& weights) const;

  /// sum_J P_J reduce(v_J), without s2: [B, H, G, Q, Dv].
  at::Tensor combine_values(const at::Tensor& weights) const;

  /// d(combined values . grad) / d weights, [B, H, G, Q, L, K]. `grad` [B, H, G, Q, Dv] includes
  /// s2.
  at::Tensor grad_weights(const at::Tensor& grad) const;

  /// Gradients of the tile's value slices, [B, H, n_m, Dv] each.
  std::vector<at::Tensor> grad_values(const at::Tensor& weights, const at::Tensor& grad) const;

  /// Gradients of the tile's key slices and queries given d(logits) K^(N), [B, H, G, Q, L, D].
  at::Tensor grad_combined(const at::Tensor& grad_logits) const;
  std::vector<at::Tensor> grad_keys(const at::Tensor& grad_logits,
                                    const at::Tensor& grad_combined) const;
  at::Tensor grad_query(const at::Tensor& grad_combined) const;

 private:
  at::Tensor scores() const;
  int64_t last_count() const;
  int64_t leading_count() const;
  at::Tensor grad_rows(const at::Tensor& grad) const;
  at::Tensor marginal(const at::Tensor& weights, size_t axis) const;
  at::Tensor slice(const at::Tensor& tensor, int axis) const;

  const Problem& problem_;
  const Tile& tile_;
  at::Tensor query_;                        ///< [B, H, G, Q, D], times s1
  std::vector<at::Tensor> keys_, values_;   ///< [B, H, n_m, D or Dv]
  at::Tensor leading_key_, leading_value_;  ///< [B, H, 1, 1, L, ..], see LeadingRows
  at::Tensor combined_;                     ///< [B, H, G, Q, L, D]
  at::Tensor capped_;  ///< tanh(s1 * form / c), [B, H, G, Q, L, K], or undefined
};

}  // namespace nsimplex::dense

// Declares the keys and tuples that a query may see, and masks over whole tuples.

#pragma once

#include <vector>

#include "attention/common/attention_tiles.h"

// The mask over whole tuples that the caller passes as a tensor, and its gradient.

namespace nsimplex::dense {

/// A mask that broadcasts to [B, Hq, Tq, T_1, .., T_N]: booleans, or numbers that are added to
/// logits.
class TupleMask {
 public:
  TupleMask(const at::Tensor& mask, int order, int64_t kv_heads);

  /// Of the pairs of a query and a key of one axis.
  static TupleMask of_pairs(const at::Tensor& mask, int axis, int order, int64_t kv_heads);

  bool boolean() const { return mask_.scalar_type() == at::kBool; }
  /// [B, Hq, Tq, T_1, .., T_N], any of them 1.
  const at::Tensor& tensor() const { return mask_; }
  /// A gradient of that shape in the mask's own shape and dtype.
  at::Tensor in_own_shape(const at::Tensor& gradient) const;

  /// The part for a tile: [B, H, G, Q, L, K]. Dimensions before L may broadcast.
  at::Tensor slice(const Tile& tile) const;

 private:
  friend class MaskGradient;
  at::Tensor mask_;  ///< [B, Hq, Tq, T_1, .., T_N], any of them 1
  at::DimVector sizes_;
  int64_t kv_heads_ = 1;
};

/// The call's pair_masks, as masks over whole tuples.
std::vector<TupleMask> pair_masks_of(const Call& call);
/// The mask over whole tuples, if the call has one, and then its pair_masks.
std::vector<TupleMask> masks_of(const Call& call);

/// Collects the gradient of an additive mask. It sums the tiles of a block of queries. Then it
/// concatenates the blocks, or sums them if the mask is the same for all queries.
class MaskGradient {
 public:
  explicit MaskGradient(const TupleMask& mask) : mask_(mask) {}

  /// d(logits) of a tile, [B, H, G, Q, L, K].
  void add(const Tile& tile, const at::Tensor& grad_logits);

  /// Ends a block of queries. `options` are those of the accumulation.
  void end_block(int64_t queries, const at::TensorOptions& options);

  /// The gradient in the shape of the mask.
  at::Tensor finish() const;

 private:
  const TupleMask& mask_;
  at::Tensor block_;
  std::vector<at::Tensor> blocks_;
};

/// The tuples to which a query may attend, and the keys that may be read.
class Admissible {
 public:
  Admissible(const Call& call, const Settings& settings);

  /// The keys of an axis that take part, bool [B, n]; undefined: all. The values of other keys
  /// never affect the result.
  at::Tensor keys(int axis, kernels::Range range) const;

  /// The tuples that each query of a tile sees: bool, broadcasts to [B, H, G, Q, L, K].
  at::Tensor tuples(const Tile& tile) const;

  /// The sum over the axes of |p - j_m|, p the query's position: int64, broadcasts like tuples().
  at::Tensor distances(const Tile& tile) const;

  /// Those of masks_of(call).
  const std::vector<TupleMask>& masks() const { return masks_; }

 private:
  at::Tensor axis_view(at::Tensor tensor, int axis) const;
  at::Tensor by_leading(const at::Tensor& tuples, const Tile& tile) const;
  at::Tensor positions(kernels::Range range) const;
  at::Tensor query_positions(int axis, const Tile& tile) const;
  at::Tensor visible(int axis, const Tile& tile) const;

  const Settings& settings_;
  at::TensorOptions index_options_;
  /// per axis: bool [B, T_m]; empty: all keys take part
  std::vector<at::Tensor> taking_part_;
  /// [Tq]: bounds of each query's document, or undefined
  at::Tensor document_begin_, document_end_;
  at::Tensor query_positions_;  ///< [B, Tq] if the call has positions
  std::vector<TupleMask> masks_;
};

}  // namespace nsimplex::dense

#pragma once

#include <vector>

#include "attention/dense/dense_tiles.h"

// The mask over whole tuples that the caller materialises, and its gradient.

namespace nsimplex::dense {

/// A mask that broadcasts to [B, Hq, Tq, T_1, .., T_N]: booleans or logits to add.
class TupleMask {
 public:
  TupleMask() = default;  ///< absent
  TupleMask(const at::Tensor& mask, int order, int64_t kv_heads);

  bool boolean() const { return mask_.defined() && mask_.scalar_type() == at::kBool; }
  bool additive() const { return mask_.defined() && !boolean(); }

  /// Its part in a tile: [B, H, G, Q, L, K], dimensions before L broadcast.
  at::Tensor slice(const Tile& tile) const;

 private:
  friend class MaskGradient;
  at::Tensor mask_;  ///< [B, Hq, Tq, T_1, .., T_N], any of them 1
  at::DimVector sizes_;
  int64_t kv_heads_ = 1;
};

/// Collects the gradient of an additive mask: sums the tiles of a block of queries, and then
/// strings the blocks together, or sums them too where the mask is the same for all queries.
class MaskGradient {
 public:
  explicit MaskGradient(const TupleMask& mask) : mask_(mask) {}

  /// d(logits) of a tile, [B, H, G, Q, L, K].
  void add(const Tile& tile, const at::Tensor& grad_logits);

  /// Ends a block of queries; `options` are those of the accumulation.
  void end_block(int64_t queries, const at::TensorOptions& options);

  /// In the mask's shape.
  at::Tensor finish() const;

 private:
  const TupleMask& mask_;
  at::Tensor block_;
  std::vector<at::Tensor> blocks_;
};

}  // namespace nsimplex::dense

#pragma once

#include <vector>

#include "attention/common/attention_tiles.h"

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

/// Which tuples a query may attend to, and which keys may be read at all.
class Admissible {
 public:
  Admissible(const Call& call, const Settings& settings);

  /// The keys of an axis that take part, bool [B, n]; undefined: all. What the others hold never
  /// shows.
  at::Tensor keys(int axis, kernels::Range range) const;

  /// The tuples that each query of a tile sees: bool, broadcasts to [B, H, G, Q, L, K].
  at::Tensor tuples(const Tile& tile) const;

  const TupleMask& mask() const { return mask_; }

 private:
  at::Tensor positions(kernels::Range range) const;
  at::Tensor query_positions(int axis, const Tile& tile) const;
  at::Tensor visible(int axis, const Tile& tile) const;

  const Settings& settings_;
  at::TensorOptions index_options_;
  std::vector<at::Tensor> taking_part_;       ///< an axis: bool [B, T_m]; empty: every key does
  at::Tensor document_begin_, document_end_;  ///< [Tq] of each query's document, or undefined
  at::Tensor query_positions_;                ///< [B, Tq] where the call gives them
  TupleMask mask_;
};

}  // namespace nsimplex::dense

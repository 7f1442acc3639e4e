#pragma once

#include "attention/dense/dense_tiles.h"

namespace nsimplex::dense {

/// Dropout of whole tuples by the hash of kernels/common/tuple_hash.h, in ATen calls.
class Dropout {
 public:
  Dropout(const Call& call, const Settings& settings);

  bool active() const { return settings_.dropout_p > 0; }

  /// keep / (1 - p), [B, H, G, Q, L, K].
  at::Tensor factors(const Tile& tile, at::ScalarType type) const;

 private:
  const Settings& settings_;
  at::Tensor rows_;               ///< hash of every row, int64 [B, H, G, Tq]
  std::vector<at::Tensor> keys_;  ///< hash of every key of an axis, int64 [T_m]
};

}  // namespace nsimplex::dense

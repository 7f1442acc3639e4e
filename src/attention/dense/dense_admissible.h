#pragma once

#include <vector>

#include "attention/dense/dense_mask.h"

namespace nsimplex::dense {

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
  at::Tensor visible(int axis, const Tile& tile) const;

  const Settings& settings_;
  at::TensorOptions index_options_;
  std::vector<at::Tensor> taking_part_;       ///< an axis: bool [B, T_m]; empty: every key does
  at::Tensor document_begin_, document_end_;  ///< [Tq] of each query's document, or undefined
  TupleMask mask_;
};

}  // namespace nsimplex::dense

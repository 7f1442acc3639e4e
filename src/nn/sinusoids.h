// Sines and cosines of positions.

#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace nsimplex::detail {

/// Alternating sin and cos, float64 [rows, dim], of positions [rows], as in Vaswani et al. (arXiv
/// 1706.03762): channels 2c and 2c + 1 turn by 10000^(-2c / dim) per position.
inline at::Tensor sinusoids(const at::Tensor& positions, int64_t dim) {
  const at::Tensor channels = at::arange(0, dim, 2, positions.options().dtype(at::kDouble));
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(1) *
                            at::pow(10000.0, -channels / static_cast<double>(dim));
  return at::stack({angles.sin(), angles.cos()}, -1).flatten(1).narrow(1, 0, dim);
}

}  // namespace nsimplex::detail

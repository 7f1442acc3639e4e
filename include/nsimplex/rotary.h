// Rotary position encoding for any number of key axes.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/attention.h>
#include <nsimplex/version.h>

#include <cstdint>
#include <optional>

namespace nsimplex {

struct RotaryOptions {
  /// p, the number of channels that turn together: N + 1 for the determinant form of order N, 2 for
  /// the dot product.
  int64_t chunk = 2;
  double base = 10000.0;  ///< plane c of P turns by base^(-c / P) per position
  int64_t offset = 0;     ///< position of the first row, -2^53 to 2^53

  /// [T] or [B, T], integer or floating, instead of offset, offset + 1, ..; it has no gradient. A
  /// row whose position is not finite becomes NaN.
  std::optional<at::Tensor> positions;

  /// Radians instead of position * frequency, learned or given: [T, P], [T, H, P] or [B, T, H, P],
  /// where B and H may be 1.
  std::optional<at::Tensor> angles;

  bool inverse = false;  ///< turns the other way

  Layout layout = Layout::bhtd;  ///< of x and the result
};

/// Rotary position encoding for any number of key axes.
///
/// The head's channels are cut into chunks of p. A chunk holds floor(p / 2) planes: channels 0-1,
/// 2-3, ..; the last channel of an odd p does not turn. With P planes in the head, plane c of row t
/// turns by angle_tc = t base^(-c / P), or by the given angles:
///
///     y_a = x_a cos - x_b sin,  y_b = x_a sin + x_b cos          (a, b) the channels of plane c
///
/// Every chunk turns as a whole by an element of SO(p), so determinants of p = N + 1 vectors keep
/// their values when all positions move together. With the determinant form the logits of order N
/// therefore depend only on relative positions. The same holds for the dot product (N = 1, p = 2,
/// the usual RoPE), but not for the product form of N >= 2.
///
/// x [B, H, T, D], any strides, D a multiple of p; float32, float64, bfloat16 or float16. The
/// latter two are rotated in float32. The result has its shape, dtype and memory order. Angles made
/// from positions are computed in float64. Differentiable in x and angles, any number of times,
/// forward and backward. The function makes one pass over x, with the same bits for any number of
/// threads.
///
/// Errors: c10::ValueError or c10::TypeError that names the argument.
///
/// Sources: Su et al., arXiv 2104.09864, for p = 2.
NSIMPLEX_API at::Tensor rotary(const at::Tensor& x, const RotaryOptions& options = {});

}  // namespace nsimplex

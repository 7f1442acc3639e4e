#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_attention.h>

#include <optional>

namespace nsimplex::equivariant {

/// Added to every feature of the rectifier, so that a sum of features is never 0.
inline constexpr double kReluFloor = 1e-3;

/// Added to every feature of the exponential, so that a sum of coefficients is never 0. Where they
/// are normalised the largest feature is 1, and this is far below its rounding.
inline double exponential_floor(at::ScalarType type) {
  return type == at::kDouble ? 1e-200 : 1e-30;
}

/// What the exponents of features are lowered by, their largest of some rows. A normaliser that has
/// the same factor cancels it.
struct FeatureShift {
  bool none = true;
  /// int64 [rows]: one shift for all rows of a graph, head by head, as keys that are summed need
  /// it. Without, every row has its own.
  std::optional<at::Tensor> graphs;
};

/// Both sides of a product of features carry half of the logit's 1 / sqrt(d).
double feature_scale(const at::Tensor& x);

/// phi of queries or keys x [rows, H, d] with directions [d, features]: [rows, H, features]. The
/// shift is of exponentials alone.
at::Tensor apply_features(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                          const FeatureShift& shift);

/// The gradient of x from that of `features`, the result of apply_features().
at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                             const at::Tensor& features, const at::Tensor& grad);

}  // namespace nsimplex::equivariant

// Declares the random features of kernel attention.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_attention.h>

#include <optional>

namespace nsimplex::equivariant {

/// It is added to every feature of the rectifier, so that a sum of features is never 0.
inline constexpr double kReluFloor = 1e-3;

/// It is added to every feature of the exponential, so that a sum of coefficients is never 0. With
/// normalised features the largest is 1, and this number is far below its rounding.
inline double exponential_floor(at::ScalarType type) {
  return type == at::kDouble ? 1e-200 : 1e-30;
}

/// The number by which the exponents of features are lowered: their maximum over some rows. A
/// normaliser with the same factor cancels it.
struct FeatureShift {
  bool none = true;
  /// int64 [rows]: all rows of a graph share one shift per head, which keys that are summed
  /// require. Without it, every row has its own shift.
  std::optional<at::Tensor> graphs;
};

/// Both sides of a product of features have half of the logit's factor 1 / sqrt(d).
double feature_scale(const at::Tensor& x);

/// phi of queries or keys x [rows, H, d] with directions [d, features]: [rows, H, features]. The
/// shift applies to exponentials only.
at::Tensor apply_features(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                          const FeatureShift& shift);

/// The gradient of x from that of `features`, the result of apply_features().
at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                             const at::Tensor& features, const at::Tensor& grad);

}  // namespace nsimplex::equivariant

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_attention.h>

namespace nsimplex::equivariant {

/// Added to every feature of the rectifier, so that a sum of features is never 0.
inline constexpr double kReluFloor = 1e-3;

/// Both sides of a product of features carry half of the logit's 1 / sqrt(d).
double feature_scale(const at::Tensor& x);

/// phi of queries or keys x [rows, H, d] with directions [d, features]: [rows, H, features]. The
/// exponential is divided by that of the largest exponent of a graph and head where `graphs` (int64
/// [rows]) is given: then a normaliser that has the same factor cancels it.
at::Tensor apply_features(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                          const std::optional<at::Tensor>& graphs);

/// The gradient of x from that of `features`, the result of apply_features().
at::Tensor features_backward(FeatureMap map, const at::Tensor& x, const at::Tensor& directions,
                             const at::Tensor& features, const at::Tensor& grad);

}  // namespace nsimplex::equivariant

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <vector>

namespace nsimplex::test {

inline at::Tensor numbers(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

/// [n, 1] in float32.
inline at::Tensor column(const std::vector<float>& values) {
  return at::tensor(values).unsqueeze(1);
}

/// Normal draws in float64.
inline at::Tensor normal(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

}  // namespace nsimplex::test

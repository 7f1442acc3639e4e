#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cmath>
#include <optional>

namespace nsimplex::detail {

/// Fills weight [fan_out, fan_in] in place with normal values of variance gain^2 / (3 fan_in).
inline void initialize(at::Tensor& weight, const std::optional<at::Generator>& generator,
                       double gain = 1.0) {
  const at::NoGradGuard no_grad;
  weight.normal_(0.0, gain / std::sqrt(3.0 * static_cast<double>(weight.size(1))), generator);
}

}  // namespace nsimplex::detail

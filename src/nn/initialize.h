// Initial values of weights.

#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <nsimplex/equivariant_classes.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace nsimplex::detail {

/// Fills weight [.., fan_out, fan_in] in place with normal values of variance gain^2 / (3 fan_in).
inline void initialize(at::Tensor& weight, const std::optional<at::Generator>& generator,
                       double gain = 1.0) {
  const at::NoGradGuard no_grad;
  weight.normal_(0.0, gain / std::sqrt(3.0 * static_cast<double>(weight.size(-1))), generator);
}

}  // namespace nsimplex::detail

namespace nsimplex {

/// Normal with variance 1 / (3 fan_in), like torch's own Linear.
inline void initialize_weight(at::Tensor& weight, int64_t fan_in) {
  const at::NoGradGuard no_grad;
  weight.normal_(0, 1 / std::sqrt(3 * static_cast<double>(std::max<int64_t>(fan_in, 1))));
}

inline bool same_kind(const TensorKind& a, const TensorKind& b) {
  return a.order == b.order && a.symmetry == b.symmetry && a.has_loops() == b.has_loops();
}

}  // namespace nsimplex

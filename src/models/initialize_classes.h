#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <nsimplex/equivariant_classes.h>

#include <algorithm>
#include <cmath>

namespace nsimplex {

/// Normal with variance 1 / (3 fan_in), that of torch's own Linear.
inline void initialize_weight(at::Tensor& weight, int64_t fan_in) {
  const at::NoGradGuard no_grad;
  weight.normal_(0, 1 / std::sqrt(3 * static_cast<double>(std::max<int64_t>(fan_in, 1))));
}

inline bool same_kind(const TensorKind& a, const TensorKind& b) {
  return a.order == b.order && a.symmetry == b.symmetry && a.has_loops() == b.has_loops();
}

}  // namespace nsimplex

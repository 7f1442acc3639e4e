#pragma once

#include <ATen/core/Tensor.h>

namespace nsimplex {

/// Whether a tensor is a plain array of numbers: not sparse, nested, quantised or of another
/// library's layout.
inline bool is_plain(const at::Tensor& tensor) {
  return !tensor.is_nested() && tensor.layout() == at::kStrided && !tensor.is_quantized();
}

/// Whether numbers of a type can be computed with. torch only stores floating numbers of 8 bits.
inline bool is_floating(at::ScalarType type) {
  return type == at::kDouble || type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}
inline bool is_floating(const at::Tensor& tensor) { return is_floating(tensor.scalar_type()); }

}  // namespace nsimplex

#pragma once

#include <nsimplex/attention.h>

#include <vector>

// Operators take [B, heads, T, D]; Layout::bthd is a transposed view of that.

namespace nsimplex::dense {

/// From the layout to [B, heads, T, D], or back. What has other than 4 dimensions is left for the
/// checks of the operator.
inline at::Tensor swap_heads(Layout layout, const at::Tensor& tensor) {
  return layout == Layout::bthd && tensor.dim() == 4 ? tensor.transpose(1, 2) : tensor;
}

/// Query, keys and values as [B, heads, T, D].
struct HeadsFirst {
  HeadsFirst(Layout layout, const at::Tensor& query, at::TensorList keys, at::TensorList values)
      : query(swap_heads(layout, query)) {
    for (const at::Tensor& key : keys) this->keys.push_back(swap_heads(layout, key));
    for (const at::Tensor& value : values) this->values.push_back(swap_heads(layout, value));
  }

  at::Tensor query;
  std::vector<at::Tensor> keys, values;
};

}  // namespace nsimplex::dense

// Declares products with the weights of one part of a layer, and the gradients of these weights.

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

// The weights of one part of a layer, selected from all weights by number, and the gradient of all
// weights from those of the parts. The number -1 means no weight.

namespace nsimplex::equivariant {

/// The weights [count, ..] with a zero in front, which the number -1 selects.
at::Tensor with_none(const at::Tensor& weight);

/// [columns C, H d]: the maps `numbers` (int64 [columns]) of with_none(weights [count, C, H d]).
at::Tensor map_matrix(const at::Tensor& maps, const at::Tensor& numbers);

/// The gradient of weights [count, ..].
class WeightGradient {
 public:
  /// Adds the gradient of the weights `numbers` (int64 [n]): n times as many entries as a weight
  /// has.
  void add(const at::Tensor& numbers, const at::Tensor& own);

  at::Tensor sum(const at::Tensor& weight) const;

 private:
  std::vector<at::Tensor> numbers_, own_;
};

}  // namespace nsimplex::equivariant

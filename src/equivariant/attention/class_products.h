#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

// The weights of one part of a layer among those of all, and the gradients of all from those of
// the parts. Weights have numbers; -1: none.

namespace nsimplex::equivariant {

/// Weights [count, ..] with a zero in front, which is what -1 names.
at::Tensor with_none(const at::Tensor& weight);

/// [columns C, H d]: the maps `numbers` (int64 [columns]) of with_none(weights [count, C, H d]).
at::Tensor map_matrix(const at::Tensor& maps, const at::Tensor& numbers);

/// The gradient of weights [count, ..].
class WeightGradient {
 public:
  /// That of the weights `numbers` (int64 [n]): n times as many entries as a weight has.
  void add(const at::Tensor& numbers, const at::Tensor& own);

  at::Tensor sum(const at::Tensor& weight) const;

 private:
  std::vector<at::Tensor> numbers_, own_;
};

}  // namespace nsimplex::equivariant

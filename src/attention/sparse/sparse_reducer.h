#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "attention/sparse/sparse_arguments.h"

namespace nsimplex::sparse {

/// Combines the values of tuples, for the reference version. Values are N tensors [B, H, n, Dv].
class TupleReducer {
 public:
  /// `weights` are those of the values' heads, in the dtype computed with.
  TupleReducer(TupleReduce reduce, std::vector<at::Tensor> weights)
      : reduce_(reduce), weights_(std::move(weights)) {}

  /// reduce(v1, .., vN): [B, H, n, Dv].
  at::Tensor combine(const std::vector<at::Tensor>& values) const;

  /// Gradients of the values and of the weights, given that of combine().
  struct Gradients {
    std::vector<at::Tensor> values, weights;
  };
  Gradients backward(const std::vector<at::Tensor>& values, const at::Tensor& grad) const;

 private:
  /// Layer `index` applied to channels: x W^T + b.
  at::Tensor layer(size_t index, const at::Tensor& x) const;
  /// The gradient of x; appends those of the weights in front of what is there.
  at::Tensor layer_backward(size_t index, const at::Tensor& x, const at::Tensor& grad,
                            std::vector<at::Tensor>& weights) const;

  TupleReduce reduce_;
  std::vector<at::Tensor> weights_;
};

}  // namespace nsimplex::sparse

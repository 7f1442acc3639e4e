#include "equivariant/attention/map_matrix.h"

#include <ATen/ATen.h>

namespace nsimplex::equivariant {

using at::Tensor;

Tensor map_matrix(const Tensor& weight, const Tensor& rows) {
  const Tensor none = weight.new_zeros({1, weight.size(1), weight.size(2)});
  return at::cat({none, weight}).index_select(0, rows + 1).flatten(0, 1);
}

Tensor map_matrix_backward(const Tensor& weight, const Tensor& rows, const Tensor& grad) {
  return weight.new_zeros({weight.size(0) + 1, weight.size(1), weight.size(2)})
      .index_add(0, rows + 1, grad.view({-1, weight.size(1), weight.size(2)}))
      .narrow(0, 1, weight.size(0));
}

}  // namespace nsimplex::equivariant

#include "equivariant/attention/map_matrix.h"

#include <ATen/ATen.h>

namespace nsimplex::equivariant {

using at::Tensor;

Tensor map_matrix(const Tensor& weight, const Tensor& rows, int64_t parts) {
  const Tensor none = weight.new_zeros({1, weight.size(1), weight.size(2)});
  const int64_t columns = rows.size(0) / parts;
  return at::cat({none, weight})
      .index_select(0, rows + 1)
      .view({parts, columns, weight.size(1), weight.size(2)})
      .permute({1, 2, 0, 3})
      .reshape({columns * weight.size(1), parts * weight.size(2)});
}

Tensor map_matrix_backward(const Tensor& weight, const Tensor& rows, int64_t parts,
                           const Tensor& grad) {
  const int64_t columns = rows.size(0) / parts;
  const Tensor of_rows = grad.view({columns, weight.size(1), parts, weight.size(2)})
                             .permute({2, 0, 1, 3})
                             .reshape({parts * columns, weight.size(1), weight.size(2)});
  return weight.new_zeros({weight.size(0) + 1, weight.size(1), weight.size(2)})
      .index_add(0, rows + 1, of_rows)
      .narrow(0, 1, weight.size(0));
}

}  // namespace nsimplex::equivariant

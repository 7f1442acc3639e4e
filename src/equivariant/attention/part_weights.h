#pragma once

#include <ATen/core/Tensor.h>

// The weights that make queries or keys of light sums, as the matrix of a product. `rows` names the
// weight [C, H d] of every column of a source; -1: none.

namespace nsimplex::equivariant {

/// [columns C, H d] of weights [rows, C, H d].
at::Tensor map_matrix(const at::Tensor& weight, const at::Tensor& rows);

/// The gradient of the weights from that of the matrix.
at::Tensor map_matrix_backward(const at::Tensor& weight, const at::Tensor& rows,
                               const at::Tensor& grad);

}  // namespace nsimplex::equivariant

#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/common/tuple_attention_problem.h"

namespace nsimplex::equivariant {

/// Rows may be apart, but the channels of all heads of a row are not.
inline at::Tensor packed_heads(const at::Tensor& rows) {
  const bool packed = rows.stride(2) == 1 && rows.stride(1) == rows.size(2);
  return packed ? rows : rows.contiguous();
}

template <class T>
kernels::HeadRows<T> head_rows(const at::Tensor& rows) {
  return {rows.const_data_ptr<T>(), rows.stride(0), rows.size(2)};
}

}  // namespace nsimplex::equivariant

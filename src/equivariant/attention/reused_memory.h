#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

namespace nsimplex::equivariant {

/// Memory of one tensor at a time: each is written over the one before.
class ReusedMemory {
 public:
  /// Not initialised.
  at::Tensor take(at::IntArrayRef sizes, const at::TensorOptions& options) {
    const int64_t count = c10::multiply_integers(sizes);
    if (!memory_.defined() || memory_.numel() < count || memory_.dtype() != options.dtype()) {
      memory_ = at::Tensor();  // before the next is taken
      memory_ = at::empty({count}, options);
    }
    return memory_.narrow(0, 0, count).view(sizes);
  }

 private:
  at::Tensor memory_;
};

}  // namespace nsimplex::equivariant

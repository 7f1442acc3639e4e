// Tells plain arrays of numbers from tensors of other layouts.

#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

namespace nsimplex {

/// Whether a tensor is a plain array of numbers: not sparse, nested, quantised or of another
/// library's layout.
inline bool is_plain(const at::Tensor& tensor) {
  return !tensor.is_nested() && tensor.layout() == at::kStrided && !tensor.is_quantized();
}

/// Whether a tensor has at most 2^40 numbers, where an empty axis counts as one. No memory holds
/// more, but an expanded view may have them.
inline bool is_addressable(const at::Tensor& tensor) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t numbers = 1;
  for (const int64_t size : tensor.sizes()) {
    const int64_t extent = std::max<int64_t>(size, 1);
    if (extent > kMost / numbers) return false;
    numbers *= extent;
  }
  return true;
}

/// Whether a tensor stands for memory of its own: it is no meta tensor, and nothing traces it.
inline bool has_memory(const at::TensorBase& tensor) {
  constexpr c10::DispatchKeySet kTraced(
      {c10::DispatchKey::Python, c10::DispatchKey::Functionalize});
  return tensor.has_storage() && !tensor.is_meta() && !tensor.key_set().has_any(kTraced);
}

/// Whether the memory of a tensor was taken away or cut, as trainers do with sharded weights. The
/// tensor and views of it still have their sizes.
inline bool is_freed(const at::Tensor& tensor) {
  if (!has_memory(tensor)) return false;
  const int64_t reach = static_cast<int64_t>(at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.itemsize(), tensor.storage_offset()));
  return tensor.numel() > 0 && tensor.storage().sym_nbytes() < reach;
}

/// Whether numbers of a type can be computed with. torch only stores floating numbers of 8 bits.
inline bool is_floating(at::ScalarType type) {
  return type == at::kDouble || type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}
inline bool is_floating(const at::Tensor& tensor) { return is_floating(tensor.scalar_type()); }

}  // namespace nsimplex

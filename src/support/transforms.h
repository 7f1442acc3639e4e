// Declares how numbers are read inside the transforms of torch.func.

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

// Reading numbers inside the transforms of torch.func, which wrap tensors: a wrapped tensor has
// no memory.

namespace nsimplex {

/// As long as it lives, calls of ATen in this thread see no transform.
class BelowTransforms {
 public:
  BelowTransforms();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// The tensor that holds the numbers of a wrapped one, to be read below transforms. What vmap maps
/// over are its first dimensions.
at::Tensor below_transforms(const at::Tensor& tensor);

/// Whether vmap maps over a tensor. Its numbers then differ from one call to the next, so nothing
/// may depend on them but the results.
bool is_mapped(const at::Tensor& tensor);

/// Whether the numbers of a tensor can be read. While a graph is traced, there are none.
bool has_numbers(const at::Tensor& tensor);

}  // namespace nsimplex

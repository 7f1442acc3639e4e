// Finds the tensor inside the wrappers of torch.func.

#include "support/transforms.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/TensorBase.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>

#include <numeric>
#include <vector>

#include "support/plain_tensor.h"

namespace nsimplex {
namespace {

using at::Tensor;
using at::functorch::BatchedTensorImpl;
using at::functorch::maybeGetBatchedImpl;
using at::functorch::maybeGetTensorWrapper;

constexpr c10::DispatchKeySet kTransforms({
    c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
    c10::DispatchKey::FuncTorchDynamicLayerBackMode,
    c10::DispatchKey::FuncTorchVmapMode,
});

// The tensor inside all wrappers, and the dimension over which each vmap maps, from the outermost
// wrapper on. A dimension is counted among those that the wrappers inside leave.
std::pair<Tensor, std::vector<int64_t>> unwrapped(Tensor tensor) {
  std::vector<int64_t> mapped;
  while (true) {
    if (const auto* const wrapper = maybeGetTensorWrapper(tensor)) {
      tensor = Tensor(wrapper->value());
    } else if (const BatchedTensorImpl* const batched = maybeGetBatchedImpl(tensor)) {
      mapped.push_back(batched->bdim());
      tensor = Tensor(batched->value());
    } else {
      return {std::move(tensor), std::move(mapped)};
    }
  }
}

}  // namespace

BelowTransforms::BelowTransforms() : guard_(kTransforms | c10::autograd_dispatch_keyset) {}

Tensor below_transforms(const Tensor& tensor) {
  const auto [inside, mapped] = unwrapped(tensor);
  const BelowTransforms below;
  std::vector<int64_t> rest(inside.dim()), order;
  std::iota(rest.begin(), rest.end(), 0);
  for (size_t level = mapped.size(); level-- > 0;) {
    order.push_back(rest[mapped[level]]);
    rest.erase(rest.begin() + mapped[level]);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  return inside.permute(order);
}

bool is_mapped(const Tensor& tensor) { return !unwrapped(tensor).second.empty(); }

bool has_numbers(const Tensor& tensor) { return has_memory(unwrapped(tensor).first); }

}  // namespace nsimplex

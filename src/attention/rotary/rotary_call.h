#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>

namespace nsimplex::rotations {

using OptionalTensor = std::optional<at::Tensor>;

/// The operator's arguments as the schema lists them.
struct Call {
  const at::Tensor& x;  ///< [B, H, T, D]
  int64_t chunk;
  double base;
  c10::SymInt offset;
  const OptionalTensor& positions;
  const OptionalTensor& angles;
  bool inverse;

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(x) || (angles && predicate(*angles));
  }
};

/// Adapts a function of a Call to the dispatcher's flat argument list.
template <auto function>
at::Tensor flat(const at::Tensor& x, int64_t chunk, double base, c10::SymInt offset,
                const OptionalTensor& positions, const OptionalTensor& angles, bool inverse) {
  return function(Call{x, chunk, base, std::move(offset), positions, angles, inverse});
}

/// Refuses a call that is not defined. Sizes are symbolic: meta tensors pass the same door.
void check(const Call& call);

/// Cosines and sines of a checked call's angles, in the dtype that x is turned in: [B or 1, T, H or
/// 1, P].
struct Turns {
  at::Tensor cosines, sines;
};
Turns turns_of(const Call& call);

/// Angles given with fewer dimensions as [B or 1, T, H or 1, P].
at::Tensor with_batch_and_heads(const at::Tensor& angles);

/// The first and the second channels of every plane of [B, H, T, D]: [B, H, T, P] each.
std::pair<at::Tensor, at::Tensor> planes_of(const at::Tensor& x, int64_t chunk);

/// Calls the registered operator through the dispatcher.
at::Tensor dispatch(const Call& call);

/// The operator from plain ATen calls: every device, differentiable and batched call by call.
at::Tensor composite(const Call& call);

}  // namespace nsimplex::rotations

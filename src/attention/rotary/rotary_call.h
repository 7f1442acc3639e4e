// The options and arguments of the rotary operator in the order of its schema.

#pragma once

#include <utility>

#include "support/flat_call.h"

#define NSIMPLEX_ROTARY_OPTIONS(OPTION)                           \
  OPTION(int64_t, chunk, 2, "int chunk=2")                        \
  OPTION(double, base, 10000.0, "float base=10000.")              \
  OPTION(c10::SymInt, offset, 0, "SymInt offset=0")               \
  OPTION(OptionalTensor, positions, {}, "Tensor? positions=None") \
  OPTION(OptionalTensor, angles, {}, "Tensor? angles=None")       \
  OPTION(bool, inverse, false, "bool inverse=False")

namespace nsimplex::rotations {

/// The operator's arguments in the order of the schema (support/flat_call.h).
struct Call {
  at::Tensor x;  ///< [B, H, T, D]
  NSIMPLEX_OPTION_FIELDS(NSIMPLEX_ROTARY_OPTIONS)

  static auto fields(auto& self) { return std::tuple_cat(std::tie(self.x), option_fields(self)); }

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return any_tensor_of(std::tie(x, angles), predicate);
  }
};

/// Rejects a call that is not defined. Sizes are symbolic, so that meta tensors pass the same
/// checks.
void check(const Call& call);

/// Cosines and sines of the angles of a checked call, in the dtype of the rotation: [B or 1, T, H
/// or 1, P].
struct Turns {
  at::Tensor cosines, sines;
};
Turns turns_of(const Call& call);

/// Angles with fewer dimensions as [B or 1, T, H or 1, P].
at::Tensor with_batch_and_heads(const at::Tensor& angles);

/// The first and the second channels of every plane of [B, H, T, D]: [B, H, T, P] each.
std::pair<at::Tensor, at::Tensor> planes_of(const at::Tensor& x, int64_t chunk);

/// Calls the registered operator through the dispatcher.
at::Tensor dispatch(const Call& call);

/// The operator by ATen calls, for every device. Each call is differentiable and supports vmap.
at::Tensor composite(const Call& call);

}  // namespace nsimplex::rotations

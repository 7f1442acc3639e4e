// The options and arguments of `separable_attention` in the order of its schema.

#pragma once

#include <nsimplex/separable_attention.h>

#include <tuple>
#include <vector>

#include "kernels/common/separable_problem.h"
#include "support/flat_call.h"

#define NSIMPLEX_SEPARABLE_OPTIONS(OPTION)         \
  OPTION(bool, causal, false, "bool causal=False") \
  OPTION(at::OptionalSymIntArrayRef, window, {}, "SymInt[]? window=None")

#define NSIMPLEX_SEPARABLE_SCHEMA NSIMPLEX_SCHEMA_OF(NSIMPLEX_SEPARABLE_OPTIONS)

namespace nsimplex::separable {

/// The operator's arguments in the order of the schema (support/flat_call.h).
struct Call {
  at::Tensor query;
  at::TensorList keys, values;
  NSIMPLEX_OPTION_FIELDS(NSIMPLEX_SEPARABLE_OPTIONS)

  static auto inputs(auto& self) { return std::tie(self.query, self.keys, self.values); }
  static auto fields(auto& self) { return std::tuple_cat(inputs(self), option_fields(self)); }
  /// The arguments that have gradients.
  auto differentiable() const { return inputs(*this); }

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return any_tensor_of(differentiable(), predicate);
  }
};

struct BackwardCall {
  Call forward;
  at::Tensor out, normalizer, grad_out;
  OptionalTensor grad_normalizer;  ///< absent: zero

  static auto fields(auto& self) {
    return std::tuple_cat(Call::inputs(self.forward),
                          std::tie(self.out, self.normalizer, self.grad_out, self.grad_normalizer),
                          Call::option_fields(self.forward));
  }

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return forward.any_input(predicate) ||
           any_tensor_of(std::tie(out, normalizer, grad_out, grad_normalizer), predicate);
  }
};

using Output = std::tuple<at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>>;

/// Rejects a call that is not defined. Sizes are symbolic, so that meta tensors pass the same
/// checks.
void check(const Call& call);
void check(const BackwardCall& call);

/// The keys of an axis that each query of a checked call sees.
kernels::Visibility visibility_of(const Call& call, size_t axis);

/// Calls the registered operators through the dispatcher.
Output dispatch(const Call& call);
Output dispatch_reference(const Call& call);
Gradients dispatch(const BackwardCall& call);

/// The operator by ATen calls: any dtype and device, differentiable any number of times. O(Tq T_m)
/// work and memory.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);

/// out and normaliser from [B, Hq, Tq, Dv + 1]: the numerator and, in the last channel, the
/// denominator.
Output quotient_of(const Call& call, const at::Tensor& sums);
/// Gradients of such sums, from those of out and the normaliser, in the dtype of the normaliser.
/// They are zero for queries without a normaliser.
at::Tensor gradient_of_sums(const BackwardCall& call);

}  // namespace nsimplex::separable

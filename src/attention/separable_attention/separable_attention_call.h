#pragma once

#include <ATen/core/List.h>
#include <nsimplex/separable_attention.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "kernels/common/separable_problem.h"

namespace nsimplex::separable {

using OptionalTensor = std::optional<at::Tensor>;

/// The operator's arguments as the schema lists them.
struct Call {
  const at::Tensor& query;
  at::TensorList keys, values;
  bool causal;
  at::OptionalSymIntArrayRef window;

  /// Whether an input that has a gradient satisfies the predicate.
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(query) || std::any_of(keys.begin(), keys.end(), predicate) ||
           std::any_of(values.begin(), values.end(), predicate);
  }
};

struct BackwardCall {
  Call forward;
  const at::Tensor &out, &normalizer;
  const at::Tensor& grad_out;
  const OptionalTensor& grad_normalizer;  ///< absent: zero

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return forward.any_input(predicate) || predicate(out) || predicate(normalizer) ||
           predicate(grad_out) || (grad_normalizer && predicate(*grad_normalizer));
  }
};

using Output = std::tuple<at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, std::vector<at::Tensor>, std::vector<at::Tensor>>;

/// Adapts a function of a Call to the dispatcher's flat argument list.
template <auto function>
Output flat(const at::Tensor& query, at::TensorList keys, at::TensorList values, bool causal,
            at::OptionalSymIntArrayRef window) {
  return function(Call{query, keys, values, causal, window});
}

template <auto function>
Gradients flat_backward(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                        const at::Tensor& out, const at::Tensor& normalizer,
                        const at::Tensor& grad_out, const OptionalTensor& grad_normalizer,
                        bool causal, at::OptionalSymIntArrayRef window) {
  return function(BackwardCall{
      {query, keys, values, causal, window}, out, normalizer, grad_out, grad_normalizer});
}

/// Refuses a call that is not defined. Sizes are symbolic: meta tensors pass the same door.
void check(const Call& call);
void check(const BackwardCall& call);

/// Keys that each query of an axis sees, of a checked call.
kernels::Visibility visibility_of(const Call& call, size_t axis);

/// Calls the registered operators through the dispatcher.
Output dispatch(const Call& call);
Output dispatch_reference(const Call& call);
Gradients dispatch(const BackwardCall& call);

/// The plain ATen version: any dtype and device, differentiable any number of times. O(Tq T_m) work
/// and memory.
Output reference_forward(const Call& call);
Gradients reference_backward(const BackwardCall& call);

}  // namespace nsimplex::separable

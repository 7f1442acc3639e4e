// The arguments of the sparse equivariant linear operators.

#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "equivariant/linear/equivariant_sums_call.h"

namespace nsimplex::equivariant {

/// The arguments of the sparse linear layer.
struct LinearCall {
  const at::Tensor& x;                    ///< [m, C]
  const at::Tensor& weight;               ///< [classes, C, D]
  const std::optional<at::Tensor>& bias;  ///< [bias classes, D]
  at::TensorList plan;
  at::IntArrayRef parts;
  bool mean;

  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(x) || predicate(weight) || (bias && predicate(*bias)) ||
           any_tensor_of(std::tie(plan), predicate);
  }

  SumsCall sums() const { return {x, plan, parts, mean}; }
};

/// The arguments of its backward operator.
struct LinearBackwardCall {
  const at::Tensor& grad_out;  ///< [m', D]
  LinearCall forward;
  std::array<bool, 3> wanted;  ///< gradients of x, weight, bias

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return predicate(grad_out) || forward.any_input(predicate);
  }
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return any_tensor(predicate);
  }
};

/// Gradients of x, weight and bias; undefined if not wanted.
using LinearGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Through the dispatcher.
at::Tensor dispatch_linear(const LinearCall& call);
LinearGradients dispatch_linear_backward(const LinearBackwardCall& call);

/// By ATen calls and the sums of all classes, so it is differentiable any number of times.
at::Tensor reference_linear(const LinearCall& call);
LinearGradients reference_linear_backward(const LinearBackwardCall& call);

/// Rejects arguments that do not fit the plan.
void check_linear(const LinearCall& call);
void check_linear(const LinearBackwardCall& call);

/// The weights [classes of a part C, D]. `first` is the number of classes of the parts before.
at::Tensor part_matrix(const LinearCall& call, int64_t first, int64_t classes);

bool means(c10::string_view pooling);

/// Adapters from the dispatcher's flat argument lists to functions of calls.
template <at::Tensor (*function)(const LinearCall&)>
at::Tensor flat_linear(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::TensorList plan,
                       at::IntArrayRef parts, c10::string_view pooling) {
  return function({x, weight, bias, plan, parts, means(pooling)});
}

template <LinearGradients (*function)(const LinearBackwardCall&)>
LinearGradients flat_linear_backward(const at::Tensor& grad, const at::Tensor& x,
                                     const at::Tensor& weight,
                                     const std::optional<at::Tensor>& bias, at::TensorList plan,
                                     at::IntArrayRef parts, c10::string_view pooling,
                                     std::array<bool, 3> output_mask) {
  return function({grad, {x, weight, bias, plan, parts, means(pooling)}, output_mask});
}

}  // namespace nsimplex::equivariant

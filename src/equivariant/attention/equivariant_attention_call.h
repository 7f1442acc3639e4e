// The arguments of the equivariant attention operators, and the plan as tensors.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/equivariant_attention.h>

#include <tuple>
#include <vector>

#include "equivariant/attention/equivariant_attention_classes.h"
#include "support/flat_call.h"

// The operators' arguments, and the plan as tensors.

namespace nsimplex::equivariant {

/// A plan in the form that operators take: tensors, and numbers that describe them.
std::pair<std::vector<at::Tensor>, std::vector<int64_t>> flatten(const AttentionPlan& plan);

/// Rejects a plan that flatten() did not make, or that was changed since, because kernels do not
/// check its numbers. Its last tensor is a fingerprint of all others and of the numbers. One pass
/// over the plan; its tensors must be on the CPU.
void check_fingerprint(at::TensorList tensors, at::IntArrayRef numbers);

/// Arrays of a plan that an operator uses.
struct InTensors {
  template <class T>
  using Array = at::Tensor;
  struct Gather {
    at::TensorList plan;
    std::vector<int64_t> parts;
  };
};
using SharedTensors = SharedColumnsIn<InTensors>;
using SourceTensors = AttentionSourceIn<InTensors>;
using RelationTensors = AttentionRelationIn<InTensors>;
using PartTensors = AttentionPartIn<InTensors>;
using PlanTensors = AttentionPlanIn<InTensors>;

/// The plan in the lists of flatten(). Rejects lists of another form.
PlanTensors read_plan(at::TensorList tensors, at::IntArrayRef numbers);

struct AttentionCall {
  const at::Tensor& x;
  const at::Tensor &query, &query_bias, &key, &key_bias, &value, &output;  ///< weights
  const std::optional<at::Tensor>& directions;
  at::TensorList plan;
  at::IntArrayRef parts;
  int64_t heads;
  c10::string_view form;
  bool normalise;
  c10::string_view features;

  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return predicate(x) || predicate(query) || predicate(query_bias) || predicate(key) ||
           predicate(key_bias) || predicate(value) || predicate(output) ||
           any_tensor_of(std::tie(plan), predicate);
  }
};

struct AttentionBackwardCall {
  const at::Tensor& grad_out;
  AttentionCall forward;

  template <class Predicate>
  bool any_tensor(Predicate&& predicate) const {
    return predicate(grad_out) || forward.any_input(predicate);
  }
  template <class Predicate>
  bool any_input(Predicate&& predicate) const {
    return any_tensor(predicate);
  }
};

/// Gradients of x, query, query_bias, key, key_bias, value, output.
using AttentionGradients =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

#define NSIMPLEX_ATTENTION_PARAMETERS                                                            \
  const at::Tensor &x, const at::Tensor &query, const at::Tensor &query_bias,                    \
      const at::Tensor &key, const at::Tensor &key_bias, const at::Tensor &value,                \
      const at::Tensor &output, const std::optional<at::Tensor>&directions, at::TensorList plan, \
      at::IntArrayRef parts, int64_t heads, c10::string_view form, bool normalise,               \
      c10::string_view features
#define NSIMPLEX_ATTENTION_ARGUMENTS                                                        \
  x, query, query_bias, key, key_bias, value, output, directions, plan, parts, heads, form, \
      normalise, features

/// Adapters from the dispatcher's flat argument lists to functions of a call.
template <at::Tensor (*function)(const AttentionCall&)>
at::Tensor flat_attention(NSIMPLEX_ATTENTION_PARAMETERS) {
  return function({NSIMPLEX_ATTENTION_ARGUMENTS});
}
template <AttentionGradients (*function)(const AttentionBackwardCall&)>
AttentionGradients flat_attention_backward(const at::Tensor& grad_out,
                                           NSIMPLEX_ATTENTION_PARAMETERS) {
  return function({grad_out, {NSIMPLEX_ATTENTION_ARGUMENTS}});
}

/// Through the dispatcher.
at::Tensor dispatch_attention(const AttentionCall& call);
AttentionGradients dispatch_attention_backward(const AttentionBackwardCall& call);

/// The same by ATen calls, differentiable.
at::Tensor reference_attention(const AttentionCall& call);
AttentionGradients reference_attention_backward(const AttentionBackwardCall& call);

/// Rejects arguments that do not fit.
void check_attention(const AttentionCall& call);
void check_attention_backward(const AttentionBackwardCall& call);

}  // namespace nsimplex::equivariant

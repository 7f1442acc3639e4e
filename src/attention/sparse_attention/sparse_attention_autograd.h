#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include "attention/sparse_attention/sparse_attention_call.h"

// What the autograd node keeps of a call between forward and backward.

namespace nsimplex::sparse {

/// Saves the tensors of a call and its results, and the plain options.
void save_call(torch::autograd::AutogradContext& context, const Call& call, const Output& output);

/// A saved call; views of it live as long as this object.
class SavedCall {
 public:
  explicit SavedCall(torch::autograd::AutogradContext& context);

  Call call() const;
  const at::Tensor& out() const { return tensors_[inputs_]; }
  const at::Tensor& lse() const { return tensors_[inputs_ + 1]; }
  size_t order() const { return order_; }
  /// Query, keys, values and reducer weights: what has gradients.
  size_t inputs() const { return inputs_; }

 private:
  torch::autograd::variable_list tensors_;  ///< inputs.., out, lse, indices, offsets
  c10::intrusive_ptr<c10::ivalue::Tuple> fields_;
  size_t order_, inputs_;
  OptionalTensor offsets_;
};

}  // namespace nsimplex::sparse

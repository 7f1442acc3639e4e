#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/custom_function.h>

#include "attention/common/attention_call.h"

// What the autograd node keeps of a call between forward and backward.

namespace nsimplex::dense {

/// Saves the tensors of a call and its results, and the plain options.
void save_call(torch::autograd::AutogradContext& context, const Call& call, const Output& output);

/// A saved call; views of it live as long as this object.
class SavedCall {
 public:
  explicit SavedCall(torch::autograd::AutogradContext& context);

  Call call() const;
  const at::Tensor& out() const { return tensors_[1 + 2 * order_]; }
  const at::Tensor& lse() const { return tensors_[2 + 2 * order_]; }
  const OptionalTensor& mask() const { return mask_; }
  const OptionalTensor& sink() const { return sink_; }
  size_t order() const { return order_; }

 private:
  torch::autograd::variable_list tensors_;
  size_t order_;
  c10::intrusive_ptr<c10::ivalue::Tuple> fields_;
  c10::SmallVector<c10::SymInt, 8> window_;
  std::vector<int64_t> augment_;
  OptionalTensor key_lengths_, cu_seqlens_, mask_, sink_;
};

}  // namespace nsimplex::dense

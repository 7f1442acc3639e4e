#pragma once

#include "attention/dense/dense_arguments.h"
#include "kernels/cpu/dense/dense.h"

// A call as the fp32 CPU kernel's problem: tensors become pointers and strides here and nowhere
// else.

namespace nsimplex::dense {

/// The tensors that a kernel problem points into: the call's own, copies where channels are not
/// contiguous, and the key lengths.
class KernelInputs {
 public:
  explicit KernelInputs(const Call& call);

  /// Fills the part that forward and backward share. The problem lives no longer than this object.
  void fill(kernels::DenseProblem<float>& problem) const;

 private:
  Settings settings_;
  at::Tensor query_, valid_;
  std::array<at::Tensor, kernels::kMaxOrder> keys_, values_;
};

/// The tensor itself where its channels are contiguous, else a copy.
at::Tensor with_contiguous_channels(const at::Tensor& tensor);

/// Memory that a plan takes besides inputs and outputs: the workspace, then one scratch a worker.
struct KernelMemory {
  int64_t workspace_bytes = 0, scratch_bytes = 0, workers = 1;
  int64_t total() const { return workspace_bytes + workers * scratch_bytes; }
};
KernelMemory memory_of(const kernels::DensePlan& plan);

/// Pointers to the rows of a [B, H, T, C] tensor with contiguous channels.
kernels::Rows<const float> input_rows(const at::Tensor& tensor);
kernels::Rows<float> output_rows(const at::Tensor& tensor);

}  // namespace nsimplex::dense

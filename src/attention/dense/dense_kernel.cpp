#include "attention/dense/dense_kernel.h"

#include <algorithm>

#include "support/parallel.h"

namespace nsimplex::dense {
namespace {

kernels::ValueReduce kernel_reduce(Reduce reduce) {
  switch (reduce) {
    case Reduce::product:
      return kernels::ValueReduce::product;
    case Reduce::sum:
      return kernels::ValueReduce::sum;
    case Reduce::mean:
      return kernels::ValueReduce::mean;
  }
  return kernels::ValueReduce::product;  // not reached: settings_of knows the three
}

}  // namespace

KernelInputs::KernelInputs(const Call& call)
    : settings_(settings_of(call)),
      query_(with_contiguous_channels(call.query)),
      valid_(valid_keys(call)) {
  for (int m = 0; m < settings_.order; ++m) {
    keys_[m] = with_contiguous_channels(call.keys[m]);
    values_[m] = with_contiguous_channels(call.values[m]);
  }
}

template <class T>
void KernelInputs::fill(kernels::DenseProblem<T>& problem) const {
  problem.order = settings_.order;
  problem.reduce = kernel_reduce(settings_.reduce);
  problem.batch = query_.size(0);
  problem.heads = query_.size(1);
  problem.kv_heads = keys_[0].size(1);
  problem.queries = query_.size(2);
  problem.dim = query_.size(3);
  problem.value_dim = values_[0].size(3);
  problem.logit_scale = settings_.scale.logit;
  problem.output_scale = settings_.scale.output;
  problem.query = input_rows<T>(query_);
  for (int m = 0; m < settings_.order; ++m) {
    problem.axes[m] = {input_rows<T>(keys_[m]), input_rows<T>(values_[m]), settings_.visible[m]};
    if (valid_.defined()) {
      problem.axes[m].visible.lengths = valid_.const_data_ptr<int64_t>() + m * problem.batch;
    }
  }
}

template void KernelInputs::fill(kernels::DenseProblem<double>&) const;
template void KernelInputs::fill(kernels::DenseProblem<float>&) const;
template void KernelInputs::fill(kernels::DenseProblem<kernels::Bf16>&) const;
template void KernelInputs::fill(kernels::DenseProblem<kernels::Fp16>&) const;

at::Tensor with_contiguous_channels(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 || tensor.size(-1) == 1 ? tensor : tensor.contiguous();
}

KernelMemory memory_of(const kernels::DensePlan& plan) {
  // ATen aligns CPU memory to 64 bytes; parts of that size keep what follows them aligned too.
  const auto padded = [](size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); };
  const int64_t most_tasks =
      *std::max_element(plan.tasks, plan.tasks + kernels::DensePlan::kMaxPhases);
  return {padded(plan.workspace_bytes), padded(plan.scratch_bytes),
          std::clamp<int64_t>(most_tasks, 1, thread_count())};
}

}  // namespace nsimplex::dense

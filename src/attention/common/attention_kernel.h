// Declares the conversion of a call to the problem of the CPU kernel.

#pragma once

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "attention/common/attention_arguments.h"
#include "kernels/cpu/shared/attention_kernel_plan.h"
#include "support/parallel.h"
#include "support/working_memory.h"

// Conversion of a call to the problem of the CPU kernel. Only this file turns tensors into pointers
// and strides.

namespace nsimplex::dense {

/// The tensors to which a kernel problem points: those of the call, copies of tensors whose
/// channels are not contiguous, and tensors made from the options.
class KernelInputs {
 public:
  explicit KernelInputs(const Call& call, const char* operation = "attention");

  /// Fills the part that forward and backward share. The problem must not outlive this object.
  template <class T>
  void fill(kernels::DenseProblem<T>& problem) const;

 private:
  void take_key_masks(const Call& call);
  void take_masks(const Call& call);
  template <class T>
  void fill_options(kernels::DenseProblem<T>& problem) const;

  Settings settings_;
  at::Tensor query_;
  std::array<at::Tensor, kernels::kMaxOrder> keys_, values_;
  at::Tensor valid_;                                     // int64 [N, B]
  std::array<at::Tensor, kernels::kMaxOrder> key_mask_;  // bool [B, T_m]
  at::Tensor positions_;                                 // int64 [B, Tq]: positions of the queries
  at::Tensor documents_;  // int64 [2, T]: begin and end of the document of each query
  // Of tuples and of pairs: bool or the type of accumulation, [B, Hq, Tq, T_1, .., T_N], any of them 1.
  std::vector<at::Tensor> masks_;
  at::Tensor sink_, slopes_;  // [Hq]
};

/// The steps of a tensor [B, Hq, Tq, T_1, .., T_N], 0 where it broadcasts.
kernels::TuplePlaces tuple_places(const at::Tensor& tensor);

/// The tensor itself if its channels are contiguous, otherwise a copy.
at::Tensor with_contiguous_channels(const at::Tensor& tensor);

/// The memory of a plan besides inputs and outputs: the workspace, then one scratch area per
/// worker.
struct KernelMemory {
  int64_t workspace_bytes = 0, scratch_bytes = 0, workers = 1;
  int64_t total() const { return workspace_bytes + workers * scratch_bytes; }
};
KernelMemory memory_of(const kernels::DensePlan& plan);

/// The same for the sizes of any kernel and the largest number of tasks per phase.
KernelMemory aligned_memory(size_t workspace_bytes, size_t scratch_bytes, int64_t most_tasks);

/// Whether the kernel has this storage type.
inline bool has_kernel(at::ScalarType type) {
  return type == at::kDouble || type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}

/// Calls `run` with a value of the kernel's storage type for `type`. Only the type of the value
/// matters.
template <class Run>
auto with_storage_type(at::ScalarType type, Run&& run) {
  switch (type) {
    case at::kDouble:
      return run(double{});
    case at::kBFloat16:
      return run(kernels::Bf16{});
    case at::kHalf:
      return run(kernels::Fp16{});
    default:
      TORCH_INTERNAL_ASSERT(type == at::kFloat);
      return run(float{});
  }
}

/// One softmax state per number of `lse`, without any tuple so far. Returns none if no lse is
/// large.
template <class T>
using RowStates = std::vector<kernels::SoftmaxState<kernels::Accum<T>>>;

template <class T>
RowStates<T> room_for_states(const at::Tensor& lse) {
  using R = kernels::Accum<T>;
  const R* const begin = lse.const_data_ptr<R>();
  const bool any = std::any_of(begin, begin + lse.numel(), kernels::is_large_lse<R>);
  return RowStates<T>(any ? static_cast<size_t>(lse.numel()) : 0);
}

/// Pointers to the rows of a [B, H, T, C] tensor with contiguous channels and storage type T.
template <class T>
kernels::Rows<const T> input_rows(const at::Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1),
          tensor.stride(2)};
}
template <class T>
kernels::Rows<T> output_rows(const at::Tensor& tensor) {
  return {static_cast<T*>(tensor.mutable_data_ptr()), tensor.stride(0), tensor.stride(1),
          tensor.stride(2)};
}

/// If NSIMPLEX_PLAN=1, writes how the CPU kernel divides a call of `order` key axes as one line to
/// standard error: axes in working order, rows per block, keys per panel, divisions of the queries
/// (splits: of the inner keys), tasks per phase, memory and SIMD level.
void log_plan(std::string_view operation, int order, const kernels::DensePlan& plan,
              const KernelMemory& memory);

/// Runs the phases of a plan one after another on torch's threads. `run(phase, task, workspace,
/// scratch)` does one task. In `grouped_phase`, groups of `together` consecutive tasks run one after
/// the other; 0: all tasks may run at the same time.
template <class Run>
void run_phases(const char* operation, int order, const kernels::DensePlan& plan, Run&& run,
                int grouped_phase = 0, int64_t together = 0) {
  const KernelMemory memory = memory_of(plan);
  log_plan(operation, order, plan, memory);
  const at::Tensor buffer = working_memory(memory.total());
  char* const workspace = static_cast<char*>(buffer.mutable_data_ptr());
  char* const scratch = workspace + memory.workspace_bytes;
  for (int phase = 0; phase < plan.phases; ++phase) {
    const int64_t tasks = plan.tasks[phase];
    const int64_t group = phase == grouped_phase && together > 0 ? together : tasks;
    for (int64_t first = 0; first < tasks; first += group) {
      parallel_tasks(std::min(group, tasks - first), [&](int64_t task, int worker) {
        run(phase, first + task, workspace, scratch + worker * memory.scratch_bytes);
      });
    }
  }
}

}  // namespace nsimplex::dense

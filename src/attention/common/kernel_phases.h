#pragma once

#include <ATen/ops/empty.h>

#include <string_view>

#include "attention/common/attention_kernel.h"
#include "support/parallel.h"

namespace nsimplex::dense {

/// With NSIMPLEX_PLAN=1, writes how the CPU kernel cuts a call of `order` key axes as one line to
/// standard error: axes in working order, rows of a block, keys of a panel, cuts of the queries (of
/// the inner keys: splits), tasks of every phase, memory and SIMD level.
void log_plan(std::string_view operation, int order, const kernels::DensePlan& plan,
              const KernelMemory& memory);

/// Runs a plan's phases one after another on torch's threads; `run(phase, task, workspace,
/// scratch)` does one task.
template <class Run>
void run_phases(const char* operation, int order, const kernels::DensePlan& plan, Run&& run) {
  const KernelMemory memory = memory_of(plan);
  log_plan(operation, order, plan, memory);
  const at::Tensor buffer = at::empty({memory.total()}, at::kByte);
  char* const workspace = static_cast<char*>(buffer.mutable_data_ptr());
  char* const scratch = workspace + memory.workspace_bytes;
  for (int phase = 0; phase < plan.phases; ++phase) {
    parallel_tasks(plan.tasks[phase], [&](int64_t task, int worker) {
      run(phase, task, workspace, scratch + worker * memory.scratch_bytes);
    });
  }
}

}  // namespace nsimplex::dense

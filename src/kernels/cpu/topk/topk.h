// Declares the plan and the tasks of the top-k kernel.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/topk_problem.h"

namespace nsimplex::kernels {

/// The split of a problem: the tasks of phase 0 pack keys, and each task of phase 1 chooses keys
/// for a block of queries. It depends only on the problem, never on the number of threads.
struct TopkPlan {
  static constexpr int phases = 2;
  int64_t tasks[phases] = {};
  size_t workspace_bytes = 0;  ///< shared by all tasks, 64-byte aligned, not initialised
  size_t scratch_bytes = 0;    ///< private to a running task, 64-byte aligned, not initialised
};

template <class R>
TopkPlan plan_topk(const TopkProblem<R>& problem);

/// Runs one task of one phase.
void run_topk(const TopkProblem<float>& problem, int phase, int64_t task, void* workspace,
              void* scratch);
void run_topk(const TopkProblem<double>& problem, int phase, int64_t task, void* workspace,
              void* scratch);

}  // namespace nsimplex::kernels

// Divides a search for the k best keys into tasks.

#include "kernels/cpu/shared/simd.h"
#include "kernels/cpu/topk/topk.h"
#include "kernels/cpu/topk/topk_layout.h"

namespace nsimplex::kernels {

template <class R>
TopkPlan plan_topk(const TopkProblem<R>& problem) {
  read_simd_environment();
  TopkPlan plan;
  const int64_t chunks = ceil_div(topk::panels(problem), topk::kPackPanels);
  plan.tasks[0] = problem.batch * problem.kv_heads * chunks;
  plan.tasks[1] = problem.batch * ceil_div(problem.queries, kBlockRows);
  plan.workspace_bytes = static_cast<size_t>(problem.batch * problem.kv_heads) *
                         static_cast<size_t>(topk::packed_head(problem)) * sizeof(R);
  plan.scratch_bytes = topk::Scratch<R>(problem).size;
  return plan;
}

template TopkPlan plan_topk(const TopkProblem<float>&);
template TopkPlan plan_topk(const TopkProblem<double>&);

}  // namespace nsimplex::kernels

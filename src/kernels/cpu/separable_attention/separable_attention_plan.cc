// Divides a separable attention call into slices of features, one task each.

#include "kernels/cpu/separable_attention/separable_attention_layout.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::kernels {
namespace {

using namespace separable;

template <class T>
SeparablePlan plan_slices(const SeparableProblem<T>& problem, bool backward) {
  read_simd_environment();
  SeparablePlan plan;
  const int64_t heads = problem.batch * problem.kv_heads;
  if (heads == 0 || problem.heads == 0) return plan;

  plan.width = round_up(problem.value_dim + 1, kChannels);
  const int64_t wanted = std::clamp<int64_t>(ceil_div(kWantedTasks, heads), 1,
                                             ceil_div(problem.features, kFeatureRows));
  const bool linear = is_linear(problem);
  plan.rows = round_up(ceil_div(problem.features, wanted), linear ? kChannels : kFeatureRows);
  plan.slices = ceil_div(problem.features, plan.rows);
  plan.phases = 1;
  plan.tasks[0] = heads * plan.slices;
  if (linear) {
    plan.chunk = std::clamp<int64_t>(problem.queries, 1, kLinearQueries);
    LinearScratch<T>(problem, plan, backward, nullptr, &plan.scratch_bytes);
    return plan;
  }

  // With this size no key leaves a window in the chunk in which it enters.
  plan.chunk = std::clamp<int64_t>(problem.queries, 1, kChunkQueries);
  for (int m = 0; m < problem.order; ++m) {
    const Visibility& visible = problem.axes[m].visible;
    if (visible.left < 0 || (visible.right < 0 && !visible.causal)) continue;
    const int64_t right = visible.causal ? 0 : visible.right;
    plan.chunk = std::min(plan.chunk, visible.left + right);
  }
  plan.checkpoint = ceil_div(kCheckpointQueries, plan.chunk);
  Scratch<T>(problem, plan, backward, nullptr, &plan.scratch_bytes);
  return plan;
}

}  // namespace

template <class T>
SeparablePlan plan_separable_forward(const SeparableForward<T>& problem) {
  SeparablePlan plan = plan_slices(problem, /*backward=*/false);
  if (plan.slices > 1) {
    const int64_t rows = problem.batch * problem.heads * problem.queries;
    plan.workspace_bytes = static_cast<size_t>(plan.slices * rows * plan.width) * sizeof(T);
    plan.tasks[plan.phases++] = ceil_div(rows, kFinishQueries);
  }
  return plan;
}

template <class T>
SeparablePlan plan_separable_backward(const SeparableBackward<T>& problem) {
  return plan_slices(problem, /*backward=*/true);
}

template SeparablePlan plan_separable_forward(const SeparableForward<double>&);
template SeparablePlan plan_separable_forward(const SeparableForward<float>&);
template SeparablePlan plan_separable_backward(const SeparableBackward<double>&);
template SeparablePlan plan_separable_backward(const SeparableBackward<float>&);

}  // namespace nsimplex::kernels

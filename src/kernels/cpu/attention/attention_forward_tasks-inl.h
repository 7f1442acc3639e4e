// The tasks of the forward plan, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_TASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_TASKS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_TASKS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_TASKS_INL_H_
#endif

#include "kernels/cpu/shared/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Decoding: one part of a head's inner keys, or the merge of all parts.
template <class E, class T, class R>
void run_split(const DenseForward<T>& problem, const Geometry& geometry, const DensePlan& plan,
               int phase, int64_t task, R* workspace, R* scratch) {
  const Splits splits(problem, geometry, plan.splits);
  const TaskIndex index(problem, phase == 0 ? plan.splits : 1, task);
  R* const parts =
      workspace + (index.batch * problem.kv_heads + index.head) * plan.splits * splits.size;
  if (phase == 1) {
    merge_parts(problem, geometry, splits, plan.splits, index.batch, index.head, parts);
    return;
  }
  const Range keys = splits.part(index.block);
  const PackLayout layout(problem, geometry, /*backward=*/false, keys);
  pack_head<E>(problem, geometry, layout, index.batch, index.head, keys,
               {0, round_up(longest_axis(problem), kPanelKeys)}, scratch);
  const HeadPack pack(layout, scratch);
  R* const part = parts + index.block * splits.size;
  ForwardTask<T, E>(problem, geometry, pack, index.batch, index.head, scratch + layout.size)
      .run_part(keys, reinterpret_cast<SoftmaxState<R>*>(part), part + splits.totals);
}

template <class E, class T>
void run_forward_task(const DenseForward<T>& problem, const DensePlan& plan, int phase,
                      int64_t task, void* workspace_memory, void* scratch_memory) {
  using R = Accum<T>;
  const TileSession session(kTiled<E> ? kTileEngine : TileEngine::none);
  const Geometry geometry(problem);
  R* const workspace = static_cast<R*>(workspace_memory);
  R* scratch = static_cast<R*>(scratch_memory);
  if (plan.splits > 1)
    return run_split<E>(problem, geometry, plan, phase, task, workspace, scratch);

  const PackLayout layout(problem, geometry, /*backward=*/false);
  if (phase + 1 < plan.phases) {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kPackRows), task);
    const Range rows{index.block * kPackRows, (index.block + 1) * kPackRows};
    pack_head<E>(problem, geometry, layout, index.batch, index.head, rows, rows,
                 workspace + (index.batch * problem.kv_heads + index.head) * layout.size);
    return;
  }
  const TaskIndex index(problem, plan.blocks, task);
  R* pack = workspace + (index.batch * problem.kv_heads + index.head) * layout.size;
  if (plan.fused) {
    const Range every_row{0, round_up(longest_axis(problem), kPanelKeys)};
    pack = scratch;
    scratch += layout.size;
    pack_head<E>(problem, geometry, layout, index.batch, index.head, every_row, every_row, pack);
  }
  const int64_t items = ceil_div(ceil_div(geometry.items, kChunkItems), plan.blocks) * kChunkItems;
  // With a causal mask the last queries see the most keys. They go first, so that the work ends
  // evenly.
  const int64_t block = plan.blocks - 1 - index.block;
  const Range own{std::min(block * items, geometry.items),
                  std::min((block + 1) * items, geometry.items)};
  const HeadPack head_pack(layout, pack);
  ForwardTask<T, E>(problem, geometry, head_pack, index.batch, index.head, scratch).run(own);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

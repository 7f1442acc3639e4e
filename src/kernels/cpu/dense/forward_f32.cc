#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/forward_f32.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/dense/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Decoding: one part of a head's inner keys, or the merge of all.
void run_split(const DenseForward<float>& problem, const Geometry& geometry, const DensePlan& plan,
               int phase, int64_t task, float* workspace, float* scratch) {
  const Splits splits(problem, geometry, plan.splits);
  const TaskIndex index(problem, phase == 0 ? plan.splits : 1, task);
  float* const parts =
      workspace + (index.batch * problem.kv_heads + index.head) * plan.splits * splits.size;
  if (phase == 1) {
    merge_parts(problem, geometry, splits, plan.splits, index.batch, index.head, parts);
    return;
  }
  const Range keys = splits.part(index.block);
  const PackLayout layout(problem, geometry, /*backward=*/false, keys);
  pack_head(problem, geometry, layout, index.batch, index.head, keys,
            {0, round_up(longest_axis(problem), kPanelKeys)}, scratch);
  const HeadPack pack(layout, scratch);
  float* const part = parts + index.block * splits.size;
  ForwardTask(problem, geometry, pack, index.batch, index.head, scratch + layout.size)
      .run_part(keys, reinterpret_cast<SoftmaxState*>(part), part + splits.totals);
}

void forward_f32(const DenseForward<float>& problem, const DensePlan& plan, int phase, int64_t task,
                 void* workspace_memory, void* scratch_memory) {
  const Geometry geometry(problem);
  float* const workspace = static_cast<float*>(workspace_memory);
  float* scratch = static_cast<float*>(scratch_memory);
  if (plan.splits > 1) return run_split(problem, geometry, plan, phase, task, workspace, scratch);

  const PackLayout layout(problem, geometry, /*backward=*/false);
  if (phase + 1 < plan.phases) {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kPackRows), task);
    const Range rows{index.block * kPackRows, (index.block + 1) * kPackRows};
    pack_head(problem, geometry, layout, index.batch, index.head, rows, rows,
              workspace + (index.batch * problem.kv_heads + index.head) * layout.size);
    return;
  }
  const TaskIndex index(problem, plan.blocks, task);
  float* pack = workspace + (index.batch * problem.kv_heads + index.head) * layout.size;
  if (plan.fused) {
    const Range every_row{0, round_up(longest_axis(problem), kPanelKeys)};
    pack = scratch;
    scratch += layout.size;
    pack_head(problem, geometry, layout, index.batch, index.head, every_row, every_row, pack);
  }
  const int64_t items = ceil_div(ceil_div(geometry.items, kChunkItems), plan.blocks) * kChunkItems;
  // The last queries see the most keys when causal: they go first, so that the work ends evenly.
  const int64_t block = plan.blocks - 1 - index.block;
  const Range own{std::min(block * items, geometry.items),
                  std::min((block + 1) * items, geometry.items)};
  const HeadPack head_pack(layout, pack);
  ForwardTask(problem, geometry, head_pack, index.batch, index.head, scratch).run(own);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace dense {
HWY_EXPORT(forward_f32);
}

void run_dense_forward(const DenseForward<float>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch) {
  using namespace dense;
  HWY_DYNAMIC_DISPATCH(forward_f32)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

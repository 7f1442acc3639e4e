#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/forward_f32.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/dense/forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

void forward_f32(const DenseForward<float>& problem, const DensePlan& plan, int phase, int64_t task,
                 void* workspace, void* scratch) {
  const Geometry geometry(problem);
  const PackLayout layout(problem, geometry, /*backward=*/false);
  if (phase + 1 < plan.phases) {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kPackRows), task);
    float* const pack = static_cast<float*>(workspace) +
                        (index.batch * problem.kv_heads + index.head) * layout.size;
    pack_head(problem, geometry, layout, index.batch, index.head,
              {index.block * kPackRows, (index.block + 1) * kPackRows}, pack);
    return;
  }
  const TaskIndex index(problem, plan.blocks, task);
  float* pack =
      static_cast<float*>(workspace) + (index.batch * problem.kv_heads + index.head) * layout.size;
  if (plan.fused) {
    pack = static_cast<float*>(scratch);
    scratch = pack + layout.size;
    pack_head(problem, geometry, layout, index.batch, index.head,
              {0, round_up(longest_axis(problem), kPanelKeys)}, pack);
  }
  const int64_t items = ceil_div(ceil_div(geometry.items, kChunkItems), plan.blocks) * kChunkItems;
  // The last queries see the most keys when causal: they go first, so that the work ends evenly.
  const int64_t block = plan.blocks - 1 - index.block;
  const HeadPack head_pack(layout, pack);
  ForwardTask(problem, geometry, head_pack, index.batch, index.head, scratch)
      .run(
          {std::min(block * items, geometry.items), std::min((block + 1) * items, geometry.items)});
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

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/backward_f32.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/dense/add_halos-inl.h"
#include "kernels/cpu/dense/backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Gradients of one segment into its zeroed halo.
void run_segment(const DenseBackward<float>& problem, const Geometry& geometry,
                 const Segments& segments, const HeadPack& pack, const TaskIndex& index,
                 float* gradients, void* scratch) {
  const HaloLayout halo = halo_layout(problem, geometry, segments, index.block);
  std::fill(gradients + halo.begin, gradients + halo.end, 0.0f);
  const Range queries = segments.queries(problem, index.block);
  const HaloGradients own(geometry, halo, gradients);
  BackwardTask(problem, geometry, pack, own, index.batch, index.head, scratch)
      .run({queries.begin * geometry.group, queries.end * geometry.group});
}

void backward_f32(const DenseBackward<float>& problem, const DensePlan& plan, int phase,
                  int64_t task, void* workspace, void* scratch) {
  const Geometry geometry(problem);
  const PackLayout layout(problem, geometry, /*backward=*/true);
  const Segments segments = make_segments(problem, plan.blocks);
  const int64_t halos = halo_layout(problem, geometry, segments, segments.count - 1).end;
  const Range every_row{0, round_up(longest_axis(problem), kPanelKeys)};

  if (plan.fused) {
    const TaskIndex index(problem, 1, task);
    float* const pack = static_cast<float*>(scratch);
    float* const gradients = pack + layout.size;
    float* const rest = gradients + halos;
    pack_head(problem, geometry, layout, index.batch, index.head, every_row, every_row, pack);
    run_segment(problem, geometry, segments, HeadPack(layout, pack), index, gradients, rest);
    add_halos(problem, geometry, segments, index.batch, index.head, every_row, gradients, rest);
    return;
  }

  float* const packs = static_cast<float*>(workspace);
  float* const all_gradients = packs + layout.size * problem.batch * problem.kv_heads;
  auto slot = [&](const TaskIndex& index) { return index.batch * problem.kv_heads + index.head; };
  if (phase == 0) {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kPackRows), task);
    const Range rows{index.block * kPackRows, (index.block + 1) * kPackRows};
    pack_head(problem, geometry, layout, index.batch, index.head, rows, rows,
              packs + slot(index) * layout.size);
  } else if (phase == 1) {
    TaskIndex index(problem, plan.blocks, task);
    index.block = plan.blocks - 1 - index.block;  // the most keys first, as in the forward
    run_segment(problem, geometry, segments, HeadPack(layout, packs + slot(index) * layout.size),
                index, all_gradients + slot(index) * halos, scratch);
  } else {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kAddRows), task);
    add_halos(problem, geometry, segments, index.batch, index.head,
              {index.block * kAddRows, (index.block + 1) * kAddRows},
              all_gradients + slot(index) * halos, static_cast<float*>(scratch));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace dense {
HWY_EXPORT(backward_f32);
}

void run_dense_backward(const DenseBackward<float>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch) {
  using namespace dense;
  HWY_DYNAMIC_DISPATCH(backward_f32)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

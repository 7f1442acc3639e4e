// The tasks of the backward plan, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_TASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_TASKS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_TASKS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_TASKS_INL_H_
#endif

#include "kernels/cpu/shared/add_halos-inl.h"
#include "kernels/cpu/shared/backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Writes the gradients of one segment into its zeroed halo.
template <class E, class T, class R>
void run_segment(const DenseBackward<T>& problem, const Geometry& geometry,
                 const Segments& segments, const HeadPack<R>& pack, const TaskIndex& index,
                 R* gradients, R* scratch) {
  const HaloLayout halo = halo_layout(problem, geometry, segments, index.block);
  std::fill(gradients + halo.begin, gradients + halo.end, R{0});
  const Range queries = segments.queries(problem, index.block);
  const HaloGradients own(geometry, halo, gradients);
  BackwardTask<T, E>(problem, geometry, pack, own, index.batch, index.head, scratch)
      .run({queries.begin * geometry.group, queries.end * geometry.group});
}

template <class E, class T>
void run_backward_task(const DenseBackward<T>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch_memory) {
  using R = Accum<T>;
  if (problem.grad_sink && phase + 1 == plan.phases) {
    return write_sink_gradient(problem, task);
  }
  const TileSession session(kTiled<E> ? kTileEngine : TileEngine::none);
  const Geometry geometry(problem);
  const PackLayout layout(problem, geometry, /*backward=*/true);
  const Segments segments = make_segments(problem, plan.blocks);
  const int64_t halos = halo_layout(problem, geometry, segments, segments.count - 1).end;
  const Range every_row{0, round_up(longest_axis(problem), kPanelKeys)};

  R* const scratch = static_cast<R*>(scratch_memory);
  if (plan.fused) {
    const TaskIndex index(problem, 1, task);
    R* const pack = scratch;
    R* const gradients = pack + layout.size;
    R* const rest = gradients + halos;
    pack_head<E>(problem, geometry, layout, index.batch, index.head, every_row, every_row, pack);
    run_segment<E>(problem, geometry, segments, HeadPack(layout, pack), index, gradients, rest);
    add_halos<E>(problem, geometry, segments, index.batch, index.head, every_row, gradients, rest);
    return;
  }

  R* const packs = static_cast<R*>(workspace);
  R* const all_gradients = packs + layout.size * problem.batch * problem.kv_heads;
  auto slot = [&](const TaskIndex& index) { return index.batch * problem.kv_heads + index.head; };
  if (phase == 0) {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kPackRows), task);
    const Range rows{index.block * kPackRows, (index.block + 1) * kPackRows};
    pack_head<E>(problem, geometry, layout, index.batch, index.head, rows, rows,
                 packs + slot(index) * layout.size);
  } else if (phase == 1) {
    TaskIndex index(problem, plan.blocks, task);
    // blocks with the most keys first, as in the forward
    index.block = plan.blocks - 1 - index.block;
    run_segment<E>(problem, geometry, segments, HeadPack(layout, packs + slot(index) * layout.size),
                   index, all_gradients + slot(index) * halos, scratch);
  } else {
    const TaskIndex index(problem, ceil_div(longest_axis(problem), kAddRows), task);
    add_halos<E>(problem, geometry, segments, index.batch, index.head,
                 {index.block * kAddRows, (index.block + 1) * kAddRows},
                 all_gradients + slot(index) * halos, scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

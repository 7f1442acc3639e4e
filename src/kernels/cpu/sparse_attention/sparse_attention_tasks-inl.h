// The tasks of the sparse plans, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SPARSE_TASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SPARSE_TASKS_INL_H_
#undef NSIMPLEX_KERNELS_SPARSE_TASKS_INL_H_
#else
#define NSIMPLEX_KERNELS_SPARSE_TASKS_INL_H_
#endif

#include "kernels/cpu/shared/add_halos-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_runs_backward-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_runs_forward-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_sets-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::sparse {
namespace HWY_NAMESPACE {
using namespace dense;
using namespace dense::HWY_NAMESPACE;

/// Packs kPackRows rows of every axis of one head, for tuples that are processed one by one.
template <class T>
void pack_head_rows(const DenseProblem<T>& whole, const Geometry& geometry, const RowLayout& layout,
                    const TaskIndex& index, Accum<T>* base) {
  for (int m = 0; m < whole.order; ++m) {
    const DenseAxis<T>& axis = whole.axes[m];
    const Range rows{index.block * kPackRows,
                     std::min((index.block + 1) * kPackRows, axis.visible.length)};
    const auto row_of = [&](const Rows<const T>& source) {
      return [&source, &index](int64_t row) { return source.row(index.batch, index.head, row); };
    };
    pack_rows(row_of(axis.key), rows, geometry.key(m), 0, base + layout.keys[m]);
    pack_rows(row_of(axis.value), rows, geometry.value, 0, base + layout.values[m]);
  }
}

/// The place of a task's head among all.
template <class T>
int64_t head_slot(const DenseProblem<T>& whole, const TaskIndex& index) {
  return index.batch * whole.kv_heads + index.head;
}

/// E is the kind of the operands of sets; tuples that are processed one by one take numbers.
template <class E, class T>
void run_forward_task(const SparseForward<T>& problem, const DensePlan& plan, int phase,
                      int64_t task, void* workspace, void* scratch_memory) {
  using R = Accum<T>;
  const DenseForward<T>& whole = problem.dense;
  R* const scratch = static_cast<R*>(scratch_memory);
  const TaskIndex index(whole, plan.blocks, task);
  const Range queries{whole.queries * index.block / plan.blocks,
                      whole.queries * (index.block + 1) / plan.blocks};
  if (takes_tiles(whole, problem.lists)) {
    const TileSession session(kTiled<E> ? kTileEngine : TileEngine::none);
    SetsForward<E, T>(problem, index.batch, index.head, scratch).run(queries);
    return;
  }
  const auto equal = with_length(whole, problem.lists.size);
  const Geometry geometry(equal);
  const RowLayout layout(whole, geometry);
  R* const packs = static_cast<R*>(workspace);
  if (phase == 0) {
    const TaskIndex part(whole, ceil_div(longest_axis(whole), kPackRows), task);
    pack_head_rows(whole, geometry, layout, part, packs + head_slot(whole, part) * layout.size);
    return;
  }
  const HeadRows<R> rows(layout, whole.order, packs + head_slot(whole, index) * layout.size);
  RunsForward<T>(problem, geometry, rows, index.batch, index.head, scratch)
      .run({queries.begin * geometry.group, queries.end * geometry.group});
}

/// Writes the gradients of one segment of queries into its zeroed private rows.
template <class E, class T>
void run_segment(const SparseBackward<T>& problem, const Geometry& geometry,
                 const Segments& segments, const TaskIndex& index, const HeadRows<Accum<T>>* rows,
                 Accum<T>* gradients, Accum<T>* scratch) {
  using R = Accum<T>;
  const HaloLayout halo = halo_layout(problem.dense, geometry, segments, index.block);
  std::fill(gradients + halo.begin, gradients + halo.end, R{0});
  const HaloGradients own(geometry, halo, gradients);
  const Range queries = segments.queries(problem.dense, index.block);
  if (rows) {
    RunsBackward<T>(problem, geometry, *rows, own, index.batch, index.head, scratch)
        .run({queries.begin * geometry.group, queries.end * geometry.group});
  } else {
    const TileSession session(kTiled<E> ? kTileEngine : TileEngine::none);
    SetsBackward<E, T>(problem, own, index.batch, index.head, scratch).run(queries);
  }
}

template <class E, class T>
void run_backward_task(const SparseBackward<T>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch_memory) {
  using R = Accum<T>;
  const DenseBackward<T>& whole = problem.dense;
  R* const scratch = static_cast<R*>(scratch_memory);
  const auto equal = with_length(whole, problem.lists.size);
  const Geometry geometry(equal);
  const Segments segments = make_segments(whole, plan.blocks);
  const int64_t halos = halo_layout(whole, geometry, segments, segments.count - 1).end;
  const bool tiles = takes_tiles(whole, problem.lists);
  const RowLayout layout(whole, geometry);
  R* const packs = static_cast<R*>(workspace);
  R* const all_gradients = packs + (tiles ? 0 : layout.size * whole.batch * whole.kv_heads);
  const int step = tiles ? phase + 1 : phase;  // tiles gather for themselves
  if (step == 0) {
    const TaskIndex part(whole, ceil_div(longest_axis(whole), kPackRows), task);
    pack_head_rows(whole, geometry, layout, part, packs + head_slot(whole, part) * layout.size);
  } else if (step == 1) {
    const TaskIndex index(whole, plan.blocks, task);
    const int64_t slot = head_slot(whole, index);
    R* const gradients = all_gradients + slot * halos;
    if (tiles) {
      run_segment<E>(problem, geometry, segments, index, nullptr, gradients, scratch);
    } else {
      const HeadRows<R> rows(layout, whole.order, packs + slot * layout.size);
      run_segment<E>(problem, geometry, segments, index, &rows, gradients, scratch);
    }
  } else {
    const TaskIndex index(whole, ceil_div(longest_axis(whole), kAddRows), task);
    const Range keys{index.block * kAddRows, (index.block + 1) * kAddRows};
    const R* const own = all_gradients + head_slot(whole, index) * halos;
    if (tiles) {
      add_halos<E, false>(whole, geometry, segments, index.batch, index.head, keys, own, scratch);
    } else {
      add_halos<R>(whole, geometry, segments, index.batch, index.head, keys, own, scratch);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::sparse
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

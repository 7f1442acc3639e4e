// Plans how the dense kernel cuts a call into tasks, and how much memory it needs.

#include <algorithm>

#include "kernels/cpu/shared/attention_kernel_plan.h"
#include "kernels/cpu/shared/geometry.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::kernels {
namespace {

using namespace dense;

// Total number of tasks wanted, so that uneven ones balance on many cores.
constexpr int64_t kWantedTasks = 256;

// A head with at most this many items and keys is one task that packs its own data. This saves two
// parallel regions, and the packed copies stay in the cache of the core that uses them.
constexpr int64_t kFusedItems = 256, kFusedKeys = 512;

template <class T>
bool fits_one_task(const DenseProblem<T>& problem, const Geometry& geometry) {
  return geometry.items <= kChunkItems ||
         (geometry.items <= kFusedItems && longest_axis(problem) <= kFusedKeys);
}

// For elements of the computing type.
template <class T>
size_t bytes(int64_t count) {
  return static_cast<size_t>(count) * sizeof(Accum<T>);
}

template <class T>
int64_t heads_in_all(const DenseProblem<T>& problem) {
  return std::max<int64_t>(problem.batch * problem.kv_heads, 0);
}

template <class T>
int64_t pack_tasks(const DenseProblem<T>& problem) {
  return heads_in_all(problem) * ceil_div(longest_axis(problem), kPackRows);
}

// The largest number of segments with at most 4 private rows per key in all, for every axis; at
// least 2 while there are 2 queries. Fewer if the heads alone give enough tasks.
template <class T>
Segments choose_segments(const DenseProblem<T>& problem, const Geometry& geometry) {
  const int64_t wanted = ceil_div(kWantedTasks, std::max<int64_t>(heads_in_all(problem), 1));
  const int64_t chunks = ceil_div(geometry.items, kChunkItems);
  int64_t count = std::min({kMaxSegments, wanted, chunks});
  for (; count > 2; --count) {
    const Segments segments = make_segments(problem, count);
    bool fits = true;
    for (int p = 0; p < geometry.order && fits; ++p) {
      int64_t rows = 0;
      for (int64_t s = 0; s < segments.count; ++s) {
        rows += segments.halo(problem, geometry, s, p).size();
      }
      fits = rows <= 4 * problem.axes[geometry.axis[p]].visible.length;
    }
    if (fits) break;
  }
  return make_segments(problem, count);
}

// Decoding: if the items are one chunk and the heads give too few tasks, the inner keys are split
// into parts of at least kSplitKeys.
template <class T>
int64_t choose_splits(const DenseProblem<T>& problem, const Geometry& geometry) {
  constexpr int64_t kSplitKeys = 256, kSplitTasks = 64;
  if (geometry.items > kChunkItems) return 1;
  const int64_t keys = Splits(problem, geometry, 1).keys.size();
  const int64_t count = std::min(
      keys / kSplitKeys, ceil_div(kSplitTasks, std::max<int64_t>(heads_in_all(problem), 1)));
  if (count < 2) return 1;
  return ceil_div(keys, Splits(problem, geometry, count).length);  // none of them is empty
}

void set_axes(DensePlan& plan, const Geometry& geometry) {
  std::copy(geometry.axis, geometry.axis + geometry.order, plan.axis);
  plan.inner_axis = geometry.axis[geometry.inner()];
}

}  // namespace

template <class T>
bool dense_supported(const DenseProblem<T>& problem) {
  if (problem.form == Form::determinant && problem.dim % (problem.order + 1) != 0) return false;
  return problem.order >= 1 && problem.order <= kMaxOrder && problem.kv_heads > 0 &&
         problem.heads % problem.kv_heads == 0 && problem.dim > 0 && problem.value_dim > 0;
}

template <class T>
DensePlan plan_dense_forward(const DenseForward<T>& problem) {
  read_simd_environment();
  const Geometry geometry(problem);
  DensePlan plan;
  set_axes(plan, geometry);
  const int64_t heads = heads_in_all(problem);
  if (heads == 0 || geometry.items == 0) return plan;
  int64_t pack = PackLayout(problem, geometry, /*backward=*/false).size;
  int64_t workspace = 0;
  plan.splits = choose_splits(problem, geometry);
  if (plan.splits > 1) {
    const Splits splits(problem, geometry, plan.splits);
    pack = PackLayout(problem, geometry, /*backward=*/false, splits.part(0)).size;
    plan.tasks[plan.phases++] = heads * plan.splits;
    plan.tasks[plan.phases++] = heads;
    workspace = heads * plan.splits * splits.size;
  } else if (fits_one_task(problem, geometry)) {
    plan.fused = true;
    plan.blocks = 1;
    plan.tasks[plan.phases++] = heads;
  } else {
    const int64_t chunks = ceil_div(geometry.items, kChunkItems);
    plan.blocks = ceil_div(chunks, std::max<int64_t>(1, chunks * heads / kWantedTasks));
    plan.tasks[plan.phases++] = pack_tasks(problem);
    plan.tasks[plan.phases++] = heads * plan.blocks;
    workspace = pack * heads;
    pack = 0;
  }
  plan.workspace_bytes = bytes<T>(workspace);
  plan.scratch_bytes = bytes<T>(geometry.forward_scratch(/*pairs=*/sizeof(T) == 2) + pack);
  return plan;
}

template <class T>
DensePlan plan_dense_backward(const DenseBackward<T>& problem) {
  read_simd_environment();
  const Geometry geometry(problem);
  DensePlan plan;
  set_axes(plan, geometry);
  const auto add_sink_phase = [&] {
    if (problem.grad_sink) plan.tasks[plan.phases++] = problem.heads;
  };
  if (heads_in_all(problem) == 0) {  // no queries instead: gradients are still set to zero
    add_sink_phase();
    return plan;
  }
  const int64_t pack = PackLayout(problem, geometry, /*backward=*/true).size;
  plan.fused = fits_one_task(problem, geometry);
  const Segments segments =
      plan.fused ? make_segments(problem, 1) : choose_segments(problem, geometry);
  plan.blocks = segments.count;
  const int64_t halos = halo_layout(problem, geometry, segments, segments.count - 1).end;
  if (!plan.fused) plan.tasks[plan.phases++] = pack_tasks(problem);
  plan.tasks[plan.phases++] = heads_in_all(problem) * plan.blocks;
  if (!plan.fused) {
    plan.tasks[plan.phases++] = heads_in_all(problem) * ceil_div(longest_axis(problem), kAddRows);
  }

  add_sink_phase();

  const int64_t scratch = geometry.backward_scratch(/*pairs=*/sizeof(T) == 2);
  plan.workspace_bytes = plan.fused ? 0 : bytes<T>((pack + halos) * heads_in_all(problem));
  plan.scratch_bytes = bytes<T>(scratch + (plan.fused ? pack + halos : 0));
  return plan;
}

#define NSIMPLEX_INSTANTIATE(T)                                  \
  template bool dense_supported(const DenseProblem<T>&);         \
  template DensePlan plan_dense_forward(const DenseForward<T>&); \
  template DensePlan plan_dense_backward(const DenseBackward<T>&);

NSIMPLEX_INSTANTIATE(double)
NSIMPLEX_INSTANTIATE(float)
NSIMPLEX_INSTANTIATE(Bf16)
NSIMPLEX_INSTANTIATE(Fp16)
#undef NSIMPLEX_INSTANTIATE

}  // namespace nsimplex::kernels

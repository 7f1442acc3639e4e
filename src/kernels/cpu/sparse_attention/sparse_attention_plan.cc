// Divides a sparse attention call into tasks and segments.

#include <algorithm>

#include "kernels/cpu/shared/simd.h"
#include "kernels/cpu/sparse_attention/sparse_attention_layout.h"

namespace nsimplex::kernels {
namespace {

using namespace dense;
using namespace sparse;

// Total number of tasks wanted, so that uneven ones balance on many cores.
constexpr int64_t kWantedTasks = 256;

// Segments of the backward pass. Each segment of a head has gradients of all its keys, since a list
// may lead anywhere. They run in parallel if there are few heads, and the memory is this multiple
// of the gradients.
constexpr int64_t kMostSegments = 8, kWantedSegments = 64;

template <class T>
size_t bytes(int64_t count) {
  return static_cast<size_t>(count) * sizeof(Accum<T>);
}

template <class T>
int64_t heads_in_all(const DenseProblem<T>& whole) {
  return whole.batch * whole.kv_heads;
}

template <class T>
int64_t tasks_by_rows(const DenseProblem<T>& whole, int64_t rows) {
  return heads_in_all(whole) * ceil_div(longest_axis(whole), rows);
}

}  // namespace

template <class T>
DensePlan plan_sparse_forward(const SparseForward<T>& problem) {
  read_simd_environment();
  const DenseForward<T>& whole = problem.dense;
  DensePlan plan;
  const int64_t heads = heads_in_all(whole);
  if (heads == 0 || whole.queries == 0 || whole.heads == 0) return plan;
  const auto of_set = with_length(whole, problem.lists.size);
  const Geometry geometry(of_set);
  std::copy(geometry.axis, geometry.axis + geometry.order, plan.axis);
  plan.inner_axis = geometry.inner();
  plan.blocks = std::min(whole.queries, ceil_div(kWantedTasks, heads));
  if (takes_tiles(whole, problem.lists)) {
    plan.scratch_bytes = bytes<T>(geometry.forward_scratch(/*pairs=*/sizeof(T) == 2) +
                                  PackLayout(of_set, geometry, /*backward=*/false).size);
  } else {
    plan.tasks[plan.phases++] = tasks_by_rows(whole, kPackRows);
    plan.workspace_bytes = bytes<T>(heads * RowLayout(whole, geometry).size);
    plan.scratch_bytes = bytes<T>(run_scratch(geometry));
  }
  plan.tasks[plan.phases++] = heads * plan.blocks;
  return plan;
}

template <class T>
DensePlan plan_sparse_backward(const SparseBackward<T>& problem) {
  read_simd_environment();
  const DenseBackward<T>& whole = problem.dense;
  DensePlan plan;
  const int64_t heads = heads_in_all(whole);
  if (heads == 0) return plan;  // no queries instead: gradients are still set to zero
  const auto of_set = with_length(whole, problem.lists.size);
  const Geometry geometry(of_set);
  std::copy(geometry.axis, geometry.axis + geometry.order, plan.axis);
  plan.inner_axis = geometry.inner();
  const Segments segments =
      make_segments(whole, std::min(kMostSegments, ceil_div(kWantedSegments, heads)));
  plan.blocks = segments.count;
  const int64_t halos = halo_layout(whole, geometry, segments, segments.count - 1).end;
  int64_t pack = 0;
  if (takes_tiles(whole, problem.lists)) {
    plan.scratch_bytes = bytes<T>(geometry.backward_scratch(/*pairs=*/sizeof(T) == 2) +
                                  PackLayout(of_set, geometry, /*backward=*/true).size +
                                  set_gradients(of_set, geometry).end);
  } else {
    plan.tasks[plan.phases++] = tasks_by_rows(whole, kPackRows);
    pack = RowLayout(whole, geometry).size;
    plan.scratch_bytes = bytes<T>(run_scratch(geometry));
  }
  plan.tasks[plan.phases++] = heads * plan.blocks;
  plan.tasks[plan.phases++] = tasks_by_rows(whole, kAddRows);
  plan.workspace_bytes = bytes<T>((pack + halos) * heads);
  return plan;
}

#define NSIMPLEX_INSTANTIATE(T)                                    \
  template DensePlan plan_sparse_forward(const SparseForward<T>&); \
  template DensePlan plan_sparse_backward(const SparseBackward<T>&);

NSIMPLEX_INSTANTIATE(double)
NSIMPLEX_INSTANTIATE(float)
NSIMPLEX_INSTANTIATE(Bf16)
NSIMPLEX_INSTANTIATE(Fp16)
#undef NSIMPLEX_INSTANTIATE

}  // namespace nsimplex::kernels

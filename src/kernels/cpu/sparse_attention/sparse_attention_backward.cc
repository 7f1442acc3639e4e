// Runs backward tasks of sparse attention on the best SIMD level.
//
// CMake compiles this file once per element type, which it calls NSIMPLEX_ELEMENT.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sparse_attention/sparse_attention_backward.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/sparse_attention/sparse_attention_tasks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::sparse {
namespace HWY_NAMESPACE {

template <class T>
void run_backward(const SparseBackward<T>& problem, const DensePlan& plan, int phase, int64_t task,
                  void* workspace, void* scratch) {
#ifdef NSIMPLEX_BF16_TILES
  if constexpr (std::is_same_v<T, Bf16>) {
    if (sets_take_matrix_tiles()) {
      return run_backward_task<Bf16Tile>(problem, plan, phase, task, workspace, scratch);
    }
  }
#endif
  run_backward_task<Accum<T>>(problem, plan, phase, task, workspace, scratch);
}

void backward(const SparseBackward<NSIMPLEX_ELEMENT>& problem, const DensePlan& plan, int phase,
              int64_t task, void* workspace, void* scratch) {
  run_backward(problem, plan, phase, task, workspace, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::sparse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace sparse {
HWY_EXPORT(backward);
}

void run_sparse_backward(const SparseBackward<NSIMPLEX_ELEMENT>& problem, const DensePlan& plan,
                         int phase, int64_t task, void* workspace, void* scratch) {
  using namespace sparse;
  HWY_DYNAMIC_DISPATCH(backward)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

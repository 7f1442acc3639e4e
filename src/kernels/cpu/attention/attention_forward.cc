// Runs forward tasks of the dense kernel on the best SIMD level.
//
// CMake compiles this file once per element type, which it calls NSIMPLEX_ELEMENT.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_forward.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/attention/attention_forward_tasks-inl.h"
#include "kernels/cpu/shared/simd.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

template <class T>
void run_forward(const DenseForward<T>& problem, const DensePlan& plan, int phase, int64_t task,
                 void* workspace, void* scratch) {
  if constexpr (std::is_same_v<T, Bf16>) {
    [[maybe_unused]] const Bf16Products products =
        bf16_products(std::min(problem.dim, problem.value_dim));
#ifdef NSIMPLEX_BF16_TILES
    if (products == Bf16Products::tiles) {
      return run_forward_task<Bf16Tile>(problem, plan, phase, task, workspace, scratch);
    }
#endif
#ifdef NSIMPLEX_BF16_PAIRS
    if (products == Bf16Products::pairs) {
      return run_forward_task<Bf16Pair>(problem, plan, phase, task, workspace, scratch);
    }
#endif
  }
  run_forward_task<Accum<T>>(problem, plan, phase, task, workspace, scratch);
}

void forward(const DenseForward<NSIMPLEX_ELEMENT>& problem, const DensePlan& plan, int phase,
             int64_t task, void* workspace, void* scratch) {
  run_forward(problem, plan, phase, task, workspace, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace dense {
HWY_EXPORT(forward);
}

void run_dense_forward(const DenseForward<NSIMPLEX_ELEMENT>& problem, const DensePlan& plan,
                       int phase, int64_t task, void* workspace, void* scratch) {
  using namespace dense;
  HWY_DYNAMIC_DISPATCH(forward)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

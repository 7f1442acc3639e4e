#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_forward_bf16.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/attention/attention_forward_tasks-inl.h"
#include "kernels/cpu/shared/simd.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

void forward_bf16(const DenseForward<Bf16>& problem, const DensePlan& plan, int phase, int64_t task,
                  void* workspace, void* scratch) {
#ifdef NSIMPLEX_BF16_PAIRS
  if (bf16_pairs()) {
    return run_forward_task<Bf16Pair>(problem, plan, phase, task, workspace, scratch);
  }
#endif
  run_forward_task<float>(problem, plan, phase, task, workspace, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace dense {
HWY_EXPORT(forward_bf16);
}

void run_dense_forward(const DenseForward<Bf16>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch) {
  using namespace dense;
  HWY_DYNAMIC_DISPATCH(forward_bf16)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_backward_f32.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/attention/attention_backward_tasks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

void backward_f32(const DenseBackward<float>& problem, const DensePlan& plan, int phase,
                  int64_t task, void* workspace, void* scratch) {
  run_backward_task<float>(problem, plan, phase, task, workspace, scratch);
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

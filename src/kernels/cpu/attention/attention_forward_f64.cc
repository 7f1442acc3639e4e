#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_forward_f64.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/attention/attention_forward_tasks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

void forward_f64(const DenseForward<double>& problem, const DensePlan& plan, int phase,
                 int64_t task, void* workspace, void* scratch) {
  run_forward_task<double>(problem, plan, phase, task, workspace, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace dense {
HWY_EXPORT(forward_f64);
}

void run_dense_forward(const DenseForward<double>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch) {
  using namespace dense;
  HWY_DYNAMIC_DISPATCH(forward_f64)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

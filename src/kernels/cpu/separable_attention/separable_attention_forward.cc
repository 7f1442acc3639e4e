// Runs forward tasks of separable attention on the best SIMD level.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/separable_attention/separable_attention_forward.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/separable_attention/separable_attention_forward-inl.h"
#include "kernels/cpu/separable_attention/separable_attention_linear_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

template <class T>
void run_forward_task(const SeparableForward<T>& problem, const SeparablePlan& plan, int phase,
                      int64_t task, void* workspace, void* scratch) {
  T* const sums = static_cast<T*>(workspace);
  if (phase == 1) {
    finish_slices(problem, plan, task, sums, static_cast<T*>(scratch));
  } else if (is_linear(problem)) {
    LinearForward<T>(problem, plan, task, sums, scratch).run();
  } else {
    ForwardSlice<T>(problem, plan, task, sums, scratch).run();
  }
}

void forward_f64(const SeparableForward<double>& problem, const SeparablePlan& plan, int phase,
                 int64_t task, void* workspace, void* scratch) {
  run_forward_task(problem, plan, phase, task, workspace, scratch);
}
void forward_f32(const SeparableForward<float>& problem, const SeparablePlan& plan, int phase,
                 int64_t task, void* workspace, void* scratch) {
  run_forward_task(problem, plan, phase, task, workspace, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace separable {
HWY_EXPORT(forward_f64);
HWY_EXPORT(forward_f32);
}  // namespace separable

void run_separable_forward(const SeparableForward<double>& problem, const SeparablePlan& plan,
                           int phase, int64_t task, void* workspace, void* scratch) {
  using namespace separable;
  HWY_DYNAMIC_DISPATCH(forward_f64)(problem, plan, phase, task, workspace, scratch);
}

void run_separable_forward(const SeparableForward<float>& problem, const SeparablePlan& plan,
                           int phase, int64_t task, void* workspace, void* scratch) {
  using namespace separable;
  HWY_DYNAMIC_DISPATCH(forward_f32)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

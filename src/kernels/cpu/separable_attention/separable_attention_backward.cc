// Runs backward tasks of separable attention on the best SIMD level.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/separable_attention/separable_attention_backward.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/separable_attention/separable_attention_backward-inl.h"
#include "kernels/cpu/separable_attention/separable_attention_linear_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

template <class T>
void run_backward_task(const SeparableBackward<T>& problem, const SeparablePlan& plan, int64_t task,
                       void* scratch) {
  if (is_linear(problem)) {
    LinearBackward<T>(problem, plan, task, scratch).run();
  } else {
    BackwardSlice<T>(problem, plan, task, scratch).run();
  }
}

void backward_f64(const SeparableBackward<double>& problem, const SeparablePlan& plan, int64_t task,
                  void* scratch) {
  run_backward_task(problem, plan, task, scratch);
}
void backward_f32(const SeparableBackward<float>& problem, const SeparablePlan& plan, int64_t task,
                  void* scratch) {
  run_backward_task(problem, plan, task, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace separable {
HWY_EXPORT(backward_f64);
HWY_EXPORT(backward_f32);
}  // namespace separable

void run_separable_backward(const SeparableBackward<double>& problem, const SeparablePlan& plan,
                            int64_t task, void* scratch) {
  using namespace separable;
  HWY_DYNAMIC_DISPATCH(backward_f64)(problem, plan, task, scratch);
}

void run_separable_backward(const SeparableBackward<float>& problem, const SeparablePlan& plan,
                            int64_t task, void* scratch) {
  using namespace separable;
  HWY_DYNAMIC_DISPATCH(backward_f32)(problem, plan, task, scratch);
}

}  // namespace nsimplex::kernels
#endif

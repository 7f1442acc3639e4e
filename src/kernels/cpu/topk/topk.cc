// Runs tasks of the top-k kernel on the best SIMD level.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/topk/topk.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/topk/topk_tasks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::topk {
namespace HWY_NAMESPACE {

void task_f64(const TopkProblem<double>& problem, int phase, int64_t task, void* workspace,
              void* scratch) {
  run_task<double>(problem, phase, task, workspace, scratch);
}
void task_f32(const TopkProblem<float>& problem, int phase, int64_t task, void* workspace,
              void* scratch) {
  run_task<float>(problem, phase, task, workspace, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::topk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/topk/topk.h"

namespace nsimplex::kernels {
namespace topk {
HWY_EXPORT(task_f64);
HWY_EXPORT(task_f32);
}  // namespace topk

void run_topk(const TopkProblem<double>& problem, int phase, int64_t task, void* workspace,
              void* scratch) {
  using namespace topk;
  HWY_DYNAMIC_DISPATCH(task_f64)(problem, phase, task, workspace, scratch);
}

void run_topk(const TopkProblem<float>& problem, int phase, int64_t task, void* workspace,
              void* scratch) {
  using namespace topk;
  HWY_DYNAMIC_DISPATCH(task_f32)(problem, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

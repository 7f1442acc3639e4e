// Runs the passes of equivariant attention over tables of sums of keys.

#include "kernels/cpu/equivariant/tuple_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/table_attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/table_run-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

void tables_f32(const TableAttention<float>& problem, const TablePlan& plan, int phase,
                int64_t task, double* workspace, double* scratch) {
  TableRun<float>(problem, plan, workspace, scratch).run(phase, task);
}
void tables_f64(const TableAttention<double>& problem, const TablePlan& plan, int phase,
                int64_t task, double* workspace, double* scratch) {
  TableRun<double>(problem, plan, workspace, scratch).run(phase, task);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(tables_f32);
HWY_EXPORT(tables_f64);
}  // namespace equivariant

void run_tables(const TableAttention<float>& problem, const TablePlan& plan, int phase,
                int64_t task, double* workspace, double* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(tables_f32)(problem, plan, phase, task, workspace, scratch);
}
void run_tables(const TableAttention<double>& problem, const TablePlan& plan, int phase,
                int64_t task, double* workspace, double* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(tables_f64)(problem, plan, phase, task, workspace, scratch);
}

}  // namespace nsimplex::kernels
#endif

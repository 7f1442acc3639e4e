// Divides segment sums and class sums into tasks of equal size.

#include <algorithm>

#include "kernels/cpu/equivariant/class_kernels.h"
#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/shared/simd.h"

namespace nsimplex::kernels {

template <class From, class To>
SumsPlan plan_segment_sums(const SegmentSums<From, To>& problem) {
  read_simd_environment();
  SumsPlan plan;
  if (problem.segments == 0) return plan;
  const int64_t tasks = std::max<int64_t>(ceil_div(problem.entries, equivariant::kTaskEntries), 1);
  plan.phases = tasks > 1 ? 2 : 1;
  plan.tasks[0] = tasks;
  plan.tasks[1] = tasks > 1 ? tasks - 1 : 0;
  if (tasks > 1) {
    plan.workspace_bytes = static_cast<size_t>(2 * tasks * problem.channels) * sizeof(double);
  }
  return plan;
}

SumsPlan plan_class_sums(const ClassPart& part) {
  read_simd_environment();
  SumsPlan plan;
  plan.phases = 1;
  plan.tasks[0] = equivariant::row_tasks(part.rows);
  return plan;
}

template SumsPlan plan_segment_sums(const SegmentSums<float, double>&);
template SumsPlan plan_segment_sums(const SegmentSums<double, double>&);
template SumsPlan plan_segment_sums(const SegmentSums<double, float>&);

}  // namespace nsimplex::kernels

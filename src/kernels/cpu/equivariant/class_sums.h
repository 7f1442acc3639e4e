#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/equivariant_problems.h"

namespace nsimplex::kernels {

/// How a problem is cut, from its sizes alone. Phases run one after the other, the tasks of a phase
/// in any order and in parallel.
struct SumsPlan {
  static constexpr int kMaxPhases = 2;
  int phases = 0;
  int64_t tasks[kMaxPhases] = {};
  size_t workspace_bytes = 0;  ///< shared by all tasks, 64-byte aligned, not initialised
  size_t scratch_bytes = 0;    ///< none is needed
};

/// Tasks have equally many entries each; of a segment that spans several, each leaves what it has
/// in the workspace and the second phase adds that up in order.
template <class From, class To>
SumsPlan plan_segment_sums(const SegmentSums<From, To>& problem);

void run_segment_sums(const SegmentSums<float, double>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace);
void run_segment_sums(const SegmentSums<double, double>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace);
void run_segment_sums(const SegmentSums<double, float>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace);

/// One phase: blocks of output rows.
SumsPlan plan_class_sums(const ClassPart& part);

void run_class_sums(const ClassSums<float>& problem, int64_t task);
void run_class_sums(const ClassSums<double>& problem, int64_t task);
void run_class_sums_transposed(const ClassSumsTransposed<float>& problem, int64_t task);
void run_class_sums_transposed(const ClassSumsTransposed<double>& problem, int64_t task);

}  // namespace nsimplex::kernels

// Adds up rows that are selected by index, segment by segment.

#include <algorithm>

#include "kernels/cpu/equivariant/class_kernels.h"
#include "kernels/cpu/equivariant/equivariant_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/segment_sums.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/channels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

template <class From, class To>
void sum_rows(const From* from, const int32_t* rows, int64_t begin, int64_t end, int64_t channels,
              To* to) {
  for_channels(channels, [&](auto sum, int64_t c) HWY_ATTR {
    sum.clear();
    for (int64_t e = begin; e < end; ++e) sum.add(from + rows[e] * channels + c);
    sum.write(1, to + c);
  });
}

/// The entries of a task: whole segments, the end of a segment that began earlier (`head`), and the
/// beginning of one that continues (`tail`).
template <class From, class To>
struct SegmentTask {
  const SegmentSums<From, To>& problem;
  double* workspace;

  int64_t begin(int64_t task) const { return std::min(task * kTaskEntries, problem.entries); }
  double* head(int64_t task) const { return workspace + 2 * task * problem.channels; }
  double* tail(int64_t task) const { return head(task) + problem.channels; }

  /// The first segment that starts at `entry` or later. An empty one belongs to its start.
  int64_t first_segment(int64_t entry) const {
    return std::lower_bound(problem.offsets, problem.offsets + problem.segments, entry) -
           problem.offsets;
  }

  void sum(int64_t task, int64_t tasks) const {
    const int64_t from = begin(task), to = begin(task + 1);
    const int64_t first = first_segment(from);
    const int64_t last = task + 1 == tasks ? problem.segments : first_segment(to);
    const int64_t head_end =
        std::min<int64_t>(first < problem.segments ? problem.offsets[first] : problem.entries, to);
    if (head_end > from) put(from, head_end, head(task));
    for (int64_t s = first; s < last; ++s) {
      const int64_t end = problem.offsets[s + 1];
      if (end <= to) {
        put(problem.offsets[s], end, problem.to + s * problem.channels);
      } else {
        put(problem.offsets[s], to, tail(task));
      }
    }
  }

  /// Adds up the segment that continues from this task into the next ones, if there is one.
  void merge(int64_t task) const {
    const int64_t next = begin(task + 1);
    const int64_t segment = first_segment(next) - 1;
    if (segment < 0) return;
    const int64_t start = problem.offsets[segment], end = problem.offsets[segment + 1];
    if (start < begin(task) || end <= next) return;  // starts elsewhere, or ends here
    for_channels(problem.channels, [&](auto sum, int64_t c) HWY_ATTR {
      sum.clear();
      sum.add(tail(task) + c);
      for (int64_t t = task + 1; begin(t) < end; ++t) sum.add(head(t) + c);
      sum.write(1, problem.to + segment * problem.channels + c);
    });
  }

  template <class Out>
  void put(int64_t from, int64_t to, Out* out) const {
    sum_rows(problem.from, problem.rows, from, to, problem.channels, out);
  }
};

template <class From, class To>
void run_task(const SegmentSums<From, To>& problem, const SumsPlan& plan, int phase, int64_t task,
              void* workspace) {
  const SegmentTask<From, To> run{problem, static_cast<double*>(workspace)};
  phase == 0 ? run.sum(task, plan.tasks[0]) : run.merge(task);
}

void segment_sums_f32(const SegmentSums<float, double>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace) {
  run_task(problem, plan, phase, task, workspace);
}
void segment_sums_f64(const SegmentSums<double, double>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace) {
  run_task(problem, plan, phase, task, workspace);
}
void segment_sums_to_f32(const SegmentSums<double, float>& problem, const SumsPlan& plan, int phase,
                         int64_t task, void* workspace) {
  run_task(problem, plan, phase, task, workspace);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(segment_sums_f32);
HWY_EXPORT(segment_sums_f64);
HWY_EXPORT(segment_sums_to_f32);
}  // namespace equivariant

void run_segment_sums(const SegmentSums<float, double>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(segment_sums_f32)(problem, plan, phase, task, workspace);
}
void run_segment_sums(const SegmentSums<double, double>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(segment_sums_f64)(problem, plan, phase, task, workspace);
}
void run_segment_sums(const SegmentSums<double, float>& problem, const SumsPlan& plan, int phase,
                      int64_t task, void* workspace) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(segment_sums_to_f32)(problem, plan, phase, task, workspace);
}

}  // namespace nsimplex::kernels
#endif

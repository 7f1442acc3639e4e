// Declares the kernels on rows of a class: class sums, segment sums, class outputs and random
// features.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/equivariant_problems.h"

namespace nsimplex::kernels {

/// Blocks of rows, for any work on them.
int64_t class_row_tasks(int64_t rows);

void run_class_output(const ClassOutput<float>& problem, int64_t task);
void run_class_output(const ClassOutput<double>& problem, int64_t task);

/// All rows. Rows of different tasks are independent.
void add_seen_rows(const SeenRows<float>& problem);
void add_seen_rows(const SeenRows<double>& problem);

/// The split of a problem into tasks, which depends only on its sizes. Phases run one after the
/// other, the tasks of a phase in any order and in parallel.
struct SumsPlan {
  static constexpr int kMaxPhases = 2;
  int phases = 0;
  int64_t tasks[kMaxPhases] = {};
  size_t workspace_bytes = 0;  ///< shared by all tasks, 64-byte aligned, not initialised
  size_t scratch_bytes = 0;    ///< no scratch is needed
};

/// Tasks have equal numbers of entries. If a segment spans several tasks, each leaves its part in
/// the workspace, and the second phase adds these up in order.
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

/// Channels of a row of directions: whole vectors.
int64_t padded_channels(int64_t channels);

/// Tasks of all three: class_row_tasks(rows).
void run_features(const HeadFeatures<float>& problem, int64_t task);
void run_features(const HeadFeatures<double>& problem, int64_t task);
/// After all tasks of run_features(), with the shifts chosen.
void run_exponentials(const HeadFeatures<float>& problem, int64_t task);
void run_exponentials(const HeadFeatures<double>& problem, int64_t task);
void run_features_backward(const HeadFeaturesBackward<float>& problem, int64_t task);
void run_features_backward(const HeadFeaturesBackward<double>& problem, int64_t task);

}  // namespace nsimplex::kernels

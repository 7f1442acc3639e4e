// Declares the plan and the tasks of the separable attention kernel.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/separable_problem.h"

namespace nsimplex::kernels {

/// The split of a problem into tasks: a task goes along the sequence of one key head with the
/// states of a slice of the features. Problems with few heads are cut into slices. Everything here
/// depends only on the problem, never on the number of threads.
struct SeparablePlan {
  static constexpr int kMaxPhases = 2;
  int phases = 0;
  int64_t tasks[kMaxPhases] = {};  ///< of a phase, in any order and in parallel
  size_t workspace_bytes = 0;      ///< shared by all tasks, 64-byte aligned, not initialised
  size_t scratch_bytes = 0;        ///< private to a running task, 64-byte aligned, not initialised
  int64_t slices = 1;              ///< of the features of a head
  int64_t rows = 0;                ///< features of a slice, a multiple of kFeatureRows
  int64_t width = 0;               ///< channels of a state: value_dim, one of ones, and padding
  int64_t chunk = 1;               ///< queries processed together
  int64_t checkpoint = 1;          ///< chunks from one saved state to the next (backward)
};

template <class T>
SeparablePlan plan_separable_forward(const SeparableForward<T>& problem);
template <class T>
SeparablePlan plan_separable_backward(const SeparableBackward<T>& problem);

/// Runs one task of one phase of the problem's plan.
void run_separable_forward(const SeparableForward<double>& problem, const SeparablePlan& plan,
                           int phase, int64_t task, void* workspace, void* scratch);
void run_separable_forward(const SeparableForward<float>& problem, const SeparablePlan& plan,
                           int phase, int64_t task, void* workspace, void* scratch);

/// The backward has one phase and needs no workspace.
void run_separable_backward(const SeparableBackward<double>& problem, const SeparablePlan& plan,
                            int64_t task, void* scratch);
void run_separable_backward(const SeparableBackward<float>& problem, const SeparablePlan& plan,
                            int64_t task, void* scratch);

/// Numbers per task: enough to pay for starting it, few enough to balance.
inline constexpr int64_t kEluTask = int64_t{1} << 13;

/// to[i] = elu(z) + 1 with z = scale from[i]: z + 1 above 0, exp(z) below, which expm1(z) + 1 would
/// round to a multiple of epsilon. NaN stays NaN. `to` may be `from`. Every number is computed
/// separately, so the bits do not depend on the split of the range.
void elu_features(const float* from, float* to, int64_t count, float scale);
void elu_features(const double* from, double* to, int64_t count, double scale);

}  // namespace nsimplex::kernels

// Declares the plan and the tasks of the sparse attention kernel.

#pragma once

#include "kernels/common/sparse_problem.h"
#include "kernels/cpu/shared/attention_kernel_plan.h"

namespace nsimplex::kernels {

/// Whether the SIMD kernel supports the problem (otherwise the caller uses the reference). Here and
/// below T is double, float, Bf16 or Fp16.
template <class T>
bool sparse_supported(const DenseProblem<T>& problem) {
  return dense_supported(problem);
}

/// The split of a problem into phases of tasks, which depends only on the problem. `blocks` is the
/// number of parts of the queries of a key head.
template <class T>
DensePlan plan_sparse_forward(const SparseForward<T>& problem);
template <class T>
DensePlan plan_sparse_backward(const SparseBackward<T>& problem);

/// Runs one task of one phase of the problem's plan.
void run_sparse_forward(const SparseForward<double>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);
void run_sparse_forward(const SparseForward<float>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);
void run_sparse_forward(const SparseForward<Bf16>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);
void run_sparse_forward(const SparseForward<Fp16>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);

void run_sparse_backward(const SparseBackward<double>& problem, const DensePlan& plan, int phase,
                         int64_t task, void* workspace, void* scratch);
void run_sparse_backward(const SparseBackward<float>& problem, const DensePlan& plan, int phase,
                         int64_t task, void* workspace, void* scratch);
void run_sparse_backward(const SparseBackward<Bf16>& problem, const DensePlan& plan, int phase,
                         int64_t task, void* workspace, void* scratch);
void run_sparse_backward(const SparseBackward<Fp16>& problem, const DensePlan& plan, int phase,
                         int64_t task, void* workspace, void* scratch);

}  // namespace nsimplex::kernels

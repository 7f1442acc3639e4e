// Declares the plan and the tasks of the dense kernel.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/attention_problem.h"

namespace nsimplex::kernels {

/// The split of a problem: phases run one after another, the tasks of a phase in any order and in
/// parallel. Everything here depends only on the problem, never on the number of threads.
struct DensePlan {
  static constexpr int kMaxPhases = 4;
  int phases = 0;
  int64_t tasks[kMaxPhases] = {};
  size_t workspace_bytes = 0;  ///< shared by all tasks, 64-byte aligned, not initialised
  size_t scratch_bytes = 0;    ///< private to a running task, 64-byte aligned, not initialised
  int axis[kMaxOrder] = {};    ///< working order: leading axes, then the GEMM's inner one
  int inner_axis = 0;          ///< the last of them
  int64_t blocks = 0;          ///< parts of the queries of one key/value head, one task each
  bool fused = false;          ///< one block per head: its task packs and adds up its own data
  int64_t splits = 1;          ///< parts of the inner keys of one head (decoding), merged in order
};

/// Whether the SIMD kernel supports the problem (otherwise the caller uses the reference). Here and
/// below T is double, float, Bf16 or Fp16.
template <class T>
bool dense_supported(const DenseProblem<T>& problem);

template <class T>
DensePlan plan_dense_forward(const DenseForward<T>& problem);
template <class T>
DensePlan plan_dense_backward(const DenseBackward<T>& problem);

/// Runs one task of one phase of the problem's plan.
void run_dense_forward(const DenseForward<double>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch);
void run_dense_forward(const DenseForward<float>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch);
void run_dense_forward(const DenseForward<Bf16>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch);
void run_dense_forward(const DenseForward<Fp16>& problem, const DensePlan& plan, int phase,
                       int64_t task, void* workspace, void* scratch);

void run_dense_backward(const DenseBackward<double>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);
void run_dense_backward(const DenseBackward<float>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);
void run_dense_backward(const DenseBackward<Bf16>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);
void run_dense_backward(const DenseBackward<Fp16>& problem, const DensePlan& plan, int phase,
                        int64_t task, void* workspace, void* scratch);

}  // namespace nsimplex::kernels

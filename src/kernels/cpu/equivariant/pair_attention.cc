// Runs the passes of equivariant attention over pairs of queries and keys.

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/equivariant/pair_attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/equivariant/pair_pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {

template <class T>
void forward(const PairAttention<T>& problem, const GroupTask& task, void* scratch) {
  PairPass<T>(problem, TupleSide::queries, /*backward=*/false, scratch).run(task);
}
template <class T>
void backward(const PairAttention<T>& problem, TupleSide side, const GroupTask& task,
              void* scratch) {
  PairPass<T>(problem, side, /*backward=*/true, scratch).run(task);
}

void pairs_forward_f32(const PairAttention<float>& problem, const GroupTask& task, void* scratch) {
  forward(problem, task, scratch);
}
void pairs_forward_f64(const PairAttention<double>& problem, const GroupTask& task, void* scratch) {
  forward(problem, task, scratch);
}
void pairs_backward_f32(const PairAttention<float>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  backward(problem, side, task, scratch);
}
void pairs_backward_f64(const PairAttention<double>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  backward(problem, side, task, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace equivariant {
HWY_EXPORT(pairs_forward_f32);
HWY_EXPORT(pairs_forward_f64);
HWY_EXPORT(pairs_backward_f32);
HWY_EXPORT(pairs_backward_f64);
}  // namespace equivariant

template <class T>
size_t pair_scratch_bytes(const PairAttention<T>& problem) {
  using equivariant::pair_padded;
  using equivariant::pair_panels;
  const int64_t width = problem.query.width, wide = problem.value.width + 1;
  constexpr int64_t kOwnRows = 4, kBuffers = 3;
  const int64_t count = pair_panels(problem.heads, width) + pair_panels(problem.heads, wide) +
                        (problem.heads + kBuffers * kOwnRows) * equivariant::kPairChunk +
                        kOwnRows * (pair_padded(width) + pair_padded(wide));
  return static_cast<size_t>(count) * sizeof(T) +
         kMaxTupleBlocks * equivariant::kPairChunk * sizeof(int32_t);
}
template size_t pair_scratch_bytes(const PairAttention<float>&);
template size_t pair_scratch_bytes(const PairAttention<double>&);

void run_pairs_forward(const PairAttention<float>& problem, const GroupTask& task, void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_forward_f32)(problem, task, scratch);
}
void run_pairs_forward(const PairAttention<double>& problem, const GroupTask& task, void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_forward_f64)(problem, task, scratch);
}
void run_pairs_backward(const PairAttention<float>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_backward_f32)(problem, side, task, scratch);
}
void run_pairs_backward(const PairAttention<double>& problem, TupleSide side, const GroupTask& task,
                        void* scratch) {
  using namespace equivariant;
  HWY_DYNAMIC_DISPATCH(pairs_backward_f64)(problem, side, task, scratch);
}

}  // namespace nsimplex::kernels
#endif

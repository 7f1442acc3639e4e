// Forward pass of the separable kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_slice-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

template <class T>
class ForwardSlice : Slice<T> {
  using Base = Slice<T>;
  using Base::group_, Base::keys_, Base::plan_, Base::problem_, Base::queries_, Base::scratch_;

 public:
  ForwardSlice(const SeparableForward<T>& problem, const SeparablePlan& plan, int64_t task,
               T* workspace, void* scratch)
      : Base(problem, plan, task, /*backward=*/false, scratch),
        forward_(problem),
        workspace_(workspace) {}

  void run() {
    this->sum_blocks();
    int64_t gathered[kMaxOrder] = {};
    for (int m = 0; m < problem_.order; ++m) {
      std::fill_n(scratch_.axes[m].state, this->state_size(), T{0});
    }
    for (int64_t chunk = 0; chunk * plan_.chunk < problem_.queries; ++chunk) {
      this->enter_chunk(chunk);
      for (int m = 0; m < problem_.order; ++m) {
        if (problem_.axes[m].sliding()) {
          this->load_common(m);
        } else {
          this->add_keys(m, {gathered[m], keys_[m].common.end}, scratch_.axes[m].state);
          gathered[m] = keys_[m].common.end + keys_[m].entering;
        }
      }
      std::fill_n(scratch_.total, queries_.size() * group_ * plan_.width, T{0});
      for_each_tile<T>(plan_.rows, plan_.width, *this);
      this->write_sums(forward_, workspace_, scratch_.total);
    }
  }

  template <int kRows, int kVectors>
  HWY_INLINE void tile(int64_t r, int64_t c) {
    for (int m = 0; m < problem_.order; ++m) this->template scan<kRows, kVectors>(m, r, c);
    Tile<T, kRows, kVectors> product;
    for (int64_t i = 0; i < queries_.size(); ++i) {
      this->load_product(i, product);
      for (int64_t g = i * group_; g < (i + 1) * group_; ++g) {
        product.add_to_row(scratch_.query + g * plan_.rows + r,
                           scratch_.total + g * plan_.width + c);
      }
    }
  }

 private:
  const SeparableForward<T>& forward_;
  T* workspace_;
};

/// Finishes the rows of one task: the slices' sums are added in the order of the slices.
template <class T>
void finish_slices(const SeparableForward<T>& problem, const SeparablePlan& plan, int64_t task,
                   const T* workspace, T* sums) {
  const int64_t all = problem.batch * problem.heads * problem.queries;
  const int64_t end = std::min((task + 1) * kFinishQueries, all);
  for (int64_t row = task * kFinishQueries; row < end; ++row) {
    std::copy_n(workspace + row * plan.width, plan.width, sums);
    for (int64_t slice = 1; slice < plan.slices; ++slice) {
      const T* HWY_RESTRICT other = workspace + (slice * all + row) * plan.width;
      for (int64_t c = 0; c < plan.width; ++c) sums[c] += other[c];
    }
    const int64_t head = row / problem.queries;
    finish(problem, head / problem.heads, head % problem.heads, row % problem.queries, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

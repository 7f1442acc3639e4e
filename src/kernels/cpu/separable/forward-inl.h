// Forward pass of the separable kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_FORWARD_INL_H_
#endif

#include "kernels/cpu/separable/slice-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

/// out = num / den and the normaliser, of one query.
template <class T>
void finish(const SeparableForward<T>& problem, int64_t batch, int64_t head, int64_t query,
            const T* sums) {
  const T den = sums[problem.value_dim];
  problem.normalizer[(batch * problem.heads + head) * problem.queries + query] = den;
  T* const out = problem.out.row(batch, head, query);
  for (int64_t c = 0; c < problem.value_dim; ++c) out[c] = den == 0 ? T{0} : sums[c] / den;
}

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
      write();
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
  void write() const {
    for (int64_t g = 0; g < group_; ++g) {
      const int64_t head = this->head_ * group_ + g;
      for (int64_t i = 0; i < queries_.size(); ++i) {
        const T* const sums = scratch_.total + (i * group_ + g) * plan_.width;
        const int64_t query = queries_.begin + i;
        if (plan_.slices == 1) {
          finish(forward_, this->batch_, head, query, sums);
          continue;
        }
        const int64_t entry = this->slice_ * problem_.batch + this->batch_;
        const int64_t row = (entry * problem_.heads + head) * problem_.queries + query;
        std::copy(sums, sums + plan_.width, workspace_ + row * plan_.width);
      }
    }
  }

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

template <class T>
void run_forward_task(const SeparableForward<T>& problem, const SeparablePlan& plan, int phase,
                      int64_t task, void* workspace, void* scratch) {
  if (phase == 0) {
    ForwardSlice<T>(problem, plan, task, static_cast<T*>(workspace), scratch).run();
  } else {
    finish_slices(problem, plan, task, static_cast<const T*>(workspace), static_cast<T*>(scratch));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// The base of every task of the separable kernel: a slice of one key head, whose rows it packs and
// writes, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_TASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_TASK_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_TASK_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_TASK_INL_H_
#endif

#include <cmath>

#include "kernels/cpu/separable_attention/separable_attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {

/// out = num / den and the normaliser, of one query.
template <class T>
void finish(const SeparableForward<T>& problem, int64_t batch, int64_t head, int64_t query,
            const T* HWY_RESTRICT sums) {
  const T den = sums[problem.value_dim], inverse = 1 / den;
  problem.normalizer[(batch * problem.heads + head) * problem.queries + query] = den;
  T* HWY_RESTRICT out = problem.out.row(batch, head, query);
  if (den == 0) {
    std::fill_n(out, problem.value_dim, T{0});
  } else if (std::isnormal(inverse)) {
    for (int64_t c = 0; c < problem.value_dim; ++c) out[c] = sums[c] * inverse;
  } else {  // the smallest and largest denominators have an inverse without digits
    for (int64_t c = 0; c < problem.value_dim; ++c) out[c] = sums[c] / den;
  }
}

template <class T>
class Task {
 public:
  Task(const SeparableProblem<T>& problem, const SeparablePlan& plan, int64_t task)
      : problem_(problem),
        plan_(plan),
        group_(problem.heads / problem.kv_heads),
        slice_(task % plan.slices),
        batch_(task / plan.slices / problem.kv_heads),
        head_(task / plan.slices % problem.kv_heads),
        first_row_(slice_ * plan.rows),
        valid_rows_(std::min(plan.rows, problem.features - first_row_)) {}

 protected:
  // to[stride] = valid numbers, then zeros.
  static HWY_INLINE void pack_row(const T* HWY_RESTRICT from, int64_t valid, int64_t stride,
                                  T* HWY_RESTRICT to) {
    int64_t c = 0;
    for (; c + kLanes<T> <= valid; c += kLanes<T>) {
      hn::StoreU(hn::LoadU(Tag<T>(), from + c), Tag<T>(), to + c);
    }
    for (; c < valid; ++c) to[c] = from[c];
    for (; c < stride; ++c) to[c] = 0;
  }

  // to[count][stride] = the rows' numbers [begin, begin + valid).
  static void pack(const Rows<const T>& from, int64_t batch, int64_t head, Range range,
                   int64_t begin, int64_t valid, int64_t stride, T* to) {
    for (int64_t j = range.begin; j < range.end; ++j, to += stride) {
      pack_row(from.row(batch, head, j) + begin, valid, stride, to);
    }
  }

  void pack_keys(int m, Range range, const KeyRows<T>& to) const {
    const SeparableAxis<T>& axis = problem_.axes[m];
    pack(axis.key, batch_, head_, range, first_row_, valid_rows_, plan_.rows, to.key);
    pack(axis.value, batch_, head_, range, 0, problem_.value_dim, plan_.width, to.value);
    for (int64_t j = 0; j < range.size(); ++j) {
      to.value[j * plan_.width + problem_.value_dim] = 1;
    }
  }

  // Rows of the chunk's queries as [query][head of the group][stride].
  void pack_heads(const Rows<const T>& from, int64_t begin, int64_t valid, int64_t stride,
                  T* to) const {
    for (int64_t g = 0; g < group_; ++g) {
      for (int64_t i = 0; i < queries_.size(); ++i) {
        pack_row(from.row(batch_, head_ * group_ + g, queries_.begin + i) + begin, valid, stride,
                 to + (i * group_ + g) * stride);
      }
    }
  }

  // Writes sums [query][head of the group][plan.width] to the output, or those of a slice to the
  // workspace.
  void write_sums(const SeparableForward<T>& forward, T* workspace, const T* from) const {
    for (int64_t g = 0; g < group_; ++g) {
      const int64_t head = head_ * group_ + g;
      for (int64_t i = 0; i < queries_.size(); ++i) {
        const T* const sums = from + (i * group_ + g) * plan_.width;
        const int64_t query = queries_.begin + i;
        if (plan_.slices == 1) {
          finish(forward, batch_, head, query, sums);
          continue;
        }
        const int64_t entry = slice_ * problem_.batch + batch_;
        const int64_t row = (entry * problem_.heads + head) * problem_.queries + query;
        std::copy(sums, sums + plan_.width, workspace + row * plan_.width);
      }
    }
  }

  // From [query][head of the group][plan.rows].
  void write_grad_query(const SeparableBackward<T>& backward, const T* from) const {
    for (int64_t g = 0; g < group_; ++g) {
      for (int64_t i = 0; i < queries_.size(); ++i) {
        T* const to =
            backward.grad_query.row(batch_, head_ * group_ + g, queries_.begin + i) + first_row_;
        pack_row(from + (i * group_ + g) * plan_.rows, valid_rows_, valid_rows_, to);
      }
    }
  }

  // The gradients of num and den for the chunk's queries: [query][head of the group][width].
  void pack_grad_sums(const SeparableBackward<T>& backward, T* to) const {
    for (int64_t i = 0; i < queries_.size(); ++i) {
      for (int64_t g = 0; g < group_; ++g, to += plan_.width) {
        grad_sums(backward, head_ * group_ + g, queries_.begin + i, to);
      }
    }
  }

  // The task's part of the gradients of keys and values: zeros, or rows in the layout of
  // pack_keys().
  void clear_key_gradients(const SeparableBackward<T>& backward, int m, Range range) const {
    for (int64_t j = range.begin; j < range.end; ++j) {
      std::fill_n(grad_key(backward, m, j), valid_rows_, T{0});
      std::fill_n(grad_value(backward, m, j), problem_.value_dim, T{0});
    }
  }
  void write_key_gradients(const SeparableBackward<T>& backward, int m, Range range,
                           const KeyRows<T>& grads) const {
    for (int64_t j = range.begin, row = 0; j < range.end; ++j, ++row) {
      pack_row(grads.key + row * plan_.rows, valid_rows_, valid_rows_, grad_key(backward, m, j));
      pack_row(grads.value + row * plan_.width, problem_.value_dim, problem_.value_dim,
               grad_value(backward, m, j));
    }
  }
  void add_key_gradients(const SeparableBackward<T>& backward, int m, Range range,
                         const KeyRows<T>& grads) const {
    for (int64_t j = range.begin, row = 0; j < range.end; ++j, ++row) {
      T* HWY_RESTRICT key = grad_key(backward, m, j);
      const T* HWY_RESTRICT of_key = grads.key + row * plan_.rows;
      for (int64_t r = 0; r < valid_rows_; ++r) key[r] += of_key[r];
      T* HWY_RESTRICT value = grad_value(backward, m, j);
      const T* HWY_RESTRICT of_value = grads.value + row * plan_.width;
      for (int64_t c = 0; c < problem_.value_dim; ++c) value[c] += of_value[c];
    }
  }

  const SeparableProblem<T>& problem_;
  const SeparablePlan& plan_;
  int64_t group_, slice_, batch_, head_, first_row_, valid_rows_;
  Range queries_;

 private:
  T* grad_key(const SeparableBackward<T>& backward, int m, int64_t j) const {
    return backward.grad_key[m].row(batch_, head_, j) + first_row_;
  }
  T* grad_value(const SeparableBackward<T>& backward, int m, int64_t j) const {
    return backward.grad_value[m].row(batch_, head_, j) + slice_ * backward.slice_stride[m];
  }

  // out = num / den: d num = d out / den, d den = d normalizer - (d num . out).
  void grad_sums(const SeparableBackward<T>& backward, int64_t head, int64_t query,
                 T* HWY_RESTRICT to) const {
    const int64_t row = (batch_ * problem_.heads + head) * problem_.queries + query;
    const T den = backward.normalizer[row];
    std::fill_n(to, plan_.width, T{0});
    if (den == 0) return;
    const Tag<T> d;
    const int64_t width = problem_.value_dim;
    const T* HWY_RESTRICT grad_out = backward.grad_out.row(batch_, head, query);
    const T* HWY_RESTRICT out = backward.out.row(batch_, head, query);
    const T inverse = 1 / den;
    Vec<T> dots = hn::Zero(d);
    int64_t c = 0;
    for (; c + kLanes<T> <= width; c += kLanes<T>) {
      const Vec<T> gradient = hn::Mul(hn::LoadU(d, grad_out + c), hn::Set(d, inverse));
      dots = hn::MulAdd(gradient, hn::LoadU(d, out + c), dots);
      hn::StoreU(gradient, d, to + c);
    }
    T dot = hn::GetLane(hn::SumOfLanes(d, dots));
    for (; c < width; ++c) {
      to[c] = grad_out[c] * inverse;
      dot += to[c] * out[c];
    }
    to[width] = (backward.grad_normalizer ? backward.grad_normalizer[row] : T{0}) - dot;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

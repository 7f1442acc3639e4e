// Dot products, weighted sums and scatter-adds over rows that are selected by index, for one SIMD
// target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SPARSE_GATHER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SPARSE_GATHER_INL_H_
#undef NSIMPLEX_KERNELS_SPARSE_GATHER_INL_H_
#else
#define NSIMPLEX_KERNELS_SPARSE_GATHER_INL_H_
#endif

#include "kernels/common/sparse_problem.h"
#include "kernels/cpu/shared/rows-inl.h"
#include "kernels/cpu/sparse_attention/sparse_attention_layout.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::sparse {
namespace HWY_NAMESPACE {
using namespace dense;
using namespace dense::HWY_NAMESPACE;

// Rows are aligned and consist of whole cache lines. The keys of a run have indices `stride` apart;
// `count` is at most kRunKeys.

// Rows processed together: enough sums in flight to hide an addition's latency.
inline constexpr int kTogether = 4;

/// to[i] = row . rows[index[i stride]].
template <class R>
HWY_INLINE void gather_dots(const R* row, const R* rows, int64_t width, const int64_t* index,
                            int64_t stride, int count, R* to) {
  const Tag<R> d;
  for (int first = 0; first < count; first += kTogether) {
    const R* own[kTogether];
    Vec<R> sum[kTogether];
    NSIMPLEX_UNROLL
    for (int i = 0; i < kTogether; ++i) {  // beyond the last: the last again
      own[i] = rows + index[std::min(first + i, count - 1) * stride] * width;
      sum[i] = hn::Zero(d);
    }
    for (int64_t c = 0; c < width; c += kLanes<R>) {
      const Vec<R> a = hn::Load(d, row + c);
      NSIMPLEX_UNROLL
      for (int i = 0; i < kTogether; ++i) {
        sum[i] = hn::MulAdd(a, hn::Load(d, own[i] + c), sum[i]);
      }
    }
    NSIMPLEX_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      to[first + i] = hn::GetLane(hn::SumOfLanes(d, sum[i]));
    }
  }
}

/// to += sum_i factor[i] rows[index[i stride]], for kVectors vectors of channels.
template <int kVectors, class R>
HWY_INLINE void gather_add_vectors(const R* factor, const R* rows, int64_t width,
                                   const int64_t* index, int64_t stride, int count, R* to) {
  const Tag<R> d;
  Vec<R> sum[kVectors];
  NSIMPLEX_UNROLL
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Load(d, to + v * kLanes<R>);
  for (int i = 0; i < count; ++i) {
    const R* const row = rows + index[i * stride] * width;
    const Vec<R> f = hn::Set(d, factor[i]);
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(f, hn::Load(d, row + v * kLanes<R>), sum[v]);
    }
  }
  NSIMPLEX_UNROLL
  for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], d, to + v * kLanes<R>);
}

/// to += sum_i factor[i] rows[index[i stride]].
template <class R>
HWY_INLINE void gather_add(const R* factor, const R* rows, int64_t width, const int64_t* index,
                           int64_t stride, int count, R* to) {
  int64_t c = 0;
  for (; c + 4 * kLanes<R> <= width; c += 4 * kLanes<R>) {
    gather_add_vectors<4>(factor, rows + c, width, index, stride, count, to + c);
  }
  for (; c < width; c += kLanes<R>) {
    gather_add_vectors<1>(factor, rows + c, width, index, stride, count, to + c);
  }
}

/// rows[index[i stride]] += factor[i] row: the transpose. It takes one key after the other, so that
/// a repeated key gets both.
template <class R>
HWY_INLINE void scatter_add(const R* factor, const R* row, int64_t width, const int64_t* index,
                            int64_t stride, int count, R* rows) {
  const Tag<R> d;
  for (int i = 0; i < count; ++i) {
    add_scaled(rows + index[i * stride] * width, hn::Set(d, factor[i]), row, width);
  }
}

/// weight[i] = 2^(score[i] + shift) in place, zeros up to the vector's end; returns their sum.
template <class R>
HWY_INLINE R weigh(R* scores, R shift, int count) {
  const Tag<R> d;
  const Vec<R> s = hn::Set(d, shift);
  Vec<R> sum = hn::Zero(d);
  for (int c = 0; c < count; c += kLanes<R>) {
    const Vec<R> weight =
        hn::IfThenElseZero(within<R>(c, 0, count), exp2(hn::Add(hn::Load(d, scores + c), s)));
    hn::Store(weight, d, scores + c);
    sum = hn::Add(sum, weight);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// The leading values of a run combined: their product or sum. Level p combines those of axes 0 ..
/// p, so that only changed levels are computed again; the first is the value's own row.
template <class R>
class ValuePrefix {
 public:
  ValuePrefix(Arena<R>& arena, int leading, int64_t width) : leading_(leading), width_(width) {
    for (int p = 1; p < leading; ++p) own_[p] = arena.take(width);
  }

  /// `values` are the rows of every axis.
  void combine(ValueReduce reduce, const R* const* values, const TupleRun& run) {
    for (int p = run.changed; p < leading_; ++p) {
      const R* const value = values[p] + run.leading[p] * width_;
      if (p == 0) {
        level_[0] = value;
        continue;
      }
      if (reduce == ValueReduce::product) {
        multiply_rows(own_[p], level_[p - 1], value, width_);
      } else {
        add_rows(own_[p], level_[p - 1], value, width_);
      }
      level_[p] = own_[p];
    }
  }

  const R* last() const { return level_[leading_ - 1]; }

 private:
  const int leading_;
  const int64_t width_;
  R* own_[kMaxOrder];
  const R* level_[kMaxOrder];
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::sparse
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

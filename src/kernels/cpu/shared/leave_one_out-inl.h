// The product rule over the axes of one row, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_
#endif

#include "kernels/common/attention_problem.h"
#include "kernels/cpu/shared/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// sum_c a_c b_c over a multiple of kLineChannels channels.
template <class R>
HWY_INLINE R dot(const R* a, const R* b, int64_t width) {
  const Tag<R> d;
  Vec<R> sum = hn::Zero(d);
  for (int64_t c = 0; c < width; c += kLanes<R>) {
    sum = hn::MulAdd(hn::Load(d, a + c), hn::Load(d, b + c), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// to += factor * from.
template <class R>
HWY_INLINE void add_scaled(R* to, Vec<R> factor, const R* from, int64_t width) {
  const Tag<R> d;
  for (int64_t c = 0; c < width; c += kLanes<R>) {
    hn::Store(hn::MulAdd(factor, hn::Load(d, from + c), hn::Load(d, to + c)), d, to + c);
  }
}

template <class R>
HWY_INLINE void add_to(R* to, Vec<R> value) {
  const Tag<R> d;
  hn::Store(hn::Add(hn::Load(d, to), value), d, to);
}

// kCount factors, or `count` where that is 0.
template <int kCount, class R>
void add_leave_one_out_of(const R* error, const R* base, const R* const* factor, int count,
                          R* grad_base, R* const* grad_factor, int64_t width) {
  const Tag<R> d;
  const int factors = kCount > 0 ? kCount : count;
  for (int64_t c = 0; c < width; c += kLanes<R>) {
    Vec<R> before[kCount > 0 ? kCount : kMaxOrder];
    Vec<R> product = hn::Load(d, base + c);
    NSIMPLEX_UNROLL
    for (int m = 0; m < factors; ++m) {
      before[m] = product;
      product = hn::Mul(product, hn::Load(d, factor[m] + c));
    }
    Vec<R> after = hn::Load(d, error + c);
    NSIMPLEX_UNROLL
    for (int m = factors - 1; m >= 0; --m) {
      if (grad_factor[m]) add_to(grad_factor[m] + c, hn::Mul(after, before[m]));
      after = hn::Mul(after, hn::Load(d, factor[m] + c));
    }
    if (grad_base) add_to(grad_base + c, after);
  }
}

/// For the product base o f_1 o .. o f_n, whose gradient is `error`:
///   grad_base += error o f_1 o .. o f_n,      grad_f_m += error o base o (all f but f_m).
/// Null gradients are skipped. Products of the factors before m are stored, and those after m are
/// accumulated, so the cost is 4 n multiplications per channel. Orders 2 and 3 keep them in
/// registers.
template <class R>
void add_leave_one_out(const R* error, const R* base, const R* const* factor, int count,
                       R* grad_base, R* const* grad_factor, int64_t width) {
  switch (count) {
    case 1:
      return add_leave_one_out_of<1>(error, base, factor, 1, grad_base, grad_factor, width);
    case 2:
      return add_leave_one_out_of<2>(error, base, factor, 2, grad_base, grad_factor, width);
    default:
      return add_leave_one_out_of<0>(error, base, factor, count, grad_base, grad_factor, width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// The product rule over the axes of one row, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_LEAVE_ONE_OUT_INL_H_
#endif

#include "kernels/common/dense_problem.h"
#include "kernels/cpu/dense/tile-inl.h"

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

/// For the product base o f_1 o .. o f_n, whose gradient is `error`:
///   grad_base += error o f_1 o .. o f_n,      grad_f_m += error o base o (all f but f_m).
/// Null gradients are left out. Products of the factors before m are kept, those after m carried
/// along, so the cost is 4 n multiplications a channel.
template <class R>
void add_leave_one_out(const R* error, const R* base, const R* const* factor, int count,
                       R* grad_base, R* const* grad_factor, int64_t width) {
  const Tag<R> d;
  for (int64_t c = 0; c < width; c += kLanes<R>) {
    Vec<R> after = hn::Load(d, error + c);
    if (count == 1) {  // the most frequent case, without the array
      if (grad_base) add_to(grad_base + c, hn::Mul(after, hn::Load(d, factor[0] + c)));
      if (grad_factor[0]) add_to(grad_factor[0] + c, hn::Mul(after, hn::Load(d, base + c)));
      continue;
    }
    Vec<R> before[kMaxOrder];
    Vec<R> product = hn::Load(d, base + c);
    for (int m = 0; m < count; ++m) {
      before[m] = product;
      product = hn::Mul(product, hn::Load(d, factor[m] + c));
    }
    for (int m = count - 1; m >= 0; --m) {
      if (grad_factor[m]) add_to(grad_factor[m] + c, hn::Mul(after, before[m]));
      after = hn::Mul(after, hn::Load(d, factor[m] + c));
    }
    if (grad_base) add_to(grad_base + c, after);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// Wedge products of planes of channels and their gradients, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_WEDGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_WEDGE_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_WEDGE_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_WEDGE_INL_H_
#endif

#include "kernels/cpu/shared/tile-inl.h"
#include "kernels/cpu/shared/wedge.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

// Planes of `plane` elements, aligned and ending in zeros, hold the chunks. Only `to` may have
// planes without gaps, `to_stride` apart: zeros that a whole vector writes beyond its plane are
// overwritten by the next plane, and elements read beyond it meet zeros.

/// to = from ^ key.
template <class R>
void wedge(const WedgeStep& step, const R* from, const R* key, int64_t plane, R* to,
           int64_t to_stride) {
  const Tag<R> d;
  const int each = step.terms_each();
  const WedgeTerm* term = step.terms.data();
  for (int target = 0; target < step.targets; ++target, term += each) {
    for (int64_t c = 0; c < plane; c += kLanes<R>) {
      Vec<R> sum = hn::Zero(d);
      for (int t = 0; t < each; ++t) {
        const Vec<R> a = hn::Load(d, from + term[t].source * plane + c);
        const Vec<R> b = hn::Load(d, key + term[t].component * plane + c);
        sum = term[t].sign > 0 ? hn::MulAdd(a, b, sum) : hn::NegMulAdd(a, b, sum);
      }
      hn::StoreU(sum, d, to + target * to_stride + c);
    }
  }
}

/// grad_from and grad_key += the gradients of from ^ key, given that of the result. Null: not
/// wanted.
template <class R>
void add_wedge_gradients(const WedgeStep& step, const R* grad_to, int64_t to_stride, const R* from,
                         const R* key, int64_t plane, R* grad_from, R* grad_key) {
  const Tag<R> d;
  const auto add = [d](R* sum, const WedgeTerm& term, Vec<R> a, Vec<R> b) HWY_ATTR {
    const Vec<R> old = hn::Load(d, sum);
    hn::Store(term.sign > 0 ? hn::MulAdd(a, b, old) : hn::NegMulAdd(a, b, old), d, sum);
  };
  for (const WedgeTerm& term : step.terms) {
    for (int64_t c = 0; c < plane; c += kLanes<R>) {
      const Vec<R> g = hn::LoadU(d, grad_to + term.target * to_stride + c);
      const int64_t source = term.source * plane + c, component = term.component * plane + c;
      if (grad_from) add(grad_from + source, term, g, hn::Load(d, key + component));
      if (grad_key) add(grad_key + component, term, g, hn::Load(d, from + source));
    }
  }
}

/// to = factor * from for one plane.
template <class R>
void scale_plane(const R* from, R factor, int64_t plane, R* to) {
  const Tag<R> d;
  const Vec<R> f = hn::Set(d, factor);
  for (int64_t c = 0; c < plane; c += kLanes<R>) {
    hn::StoreU(hn::Mul(f, hn::LoadU(d, from + c)), d, to + c);
  }
}

/// to = sign * (-from1, from0): the dual of a vector with two components, which is the result of
/// the wedge of no keys, and with sign -1 the transpose of that.
template <class R>
void dual_of_two(const R* from, int64_t from_stride, R sign, int64_t plane, R* to,
                 int64_t to_stride) {
  scale_plane(from + from_stride, -sign, plane, to);
  scale_plane(from, sign, plane, to + to_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// Weights of a strip and gradients of its logits with any options, for one SIMD target (toggled
// guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_
#endif

#include "kernels/cpu/shared/backward_rows-inl.h"
#include "kernels/cpu/shared/filter-inl.h"
#include "kernels/cpu/shared/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// P and dS of the strip that starts with block row `strip`: first all products, then masks,
/// weights and dropout row by row. With w the weight, w' its derivative and m dropout's factor,
///   P = m w,   dS = w' (m dP - delta).
template <class T, class E>
class GeneralBackward {
  using R = Accum<T>;

 public:
  GeneralBackward(const DenseProblem<T>& problem, BackwardRows<T>& rows,
                  const TupleFilter<T>& filter)
      : problem_(problem), rows_(rows), filter_(filter) {}

  /// `keys` and `values` belong to the panel; without `values` there is no dS. Tiles left the products
  /// in `rows.p` and `rows.ds`.
  void weigh_strip(const PanelPart<R>& part, int strip, const R* keys, const R* values) {
    const int64_t depth = rows_.geometry.depth, width = rows_.geometry.value_depth;
    R *const p = rows_.p + strip * kPanelKeys, *const ds = rows_.ds + strip * kPanelKeys;
    const R scale = static_cast<R>(score_scale<E>(rows_.geometry));
    if constexpr (kTiled<E>) {
      scale_strip<E>(part, scale, p);
    } else {
      multiply_strip<E>(rows_.u + strip * depth, depth, keys, slots<E>(problem_.dim), scale, part,
                        p);
      if (values) {
        multiply_strip<E>(rows_.g + strip * width, width, values, slots<E>(problem_.value_dim),
                          R{1}, part, ds);
      }
    }
    if (filter_.caps()) filter_.cap_strip(part, p, values ? slopes_ : nullptr);
    const int count = std::min(kStripRows, rows_.block.rows - strip);
    with_weigh(problem_.normalizer, [&](auto weigh) HWY_ATTR {
      for (int r = 0; r < count; ++r) {
        const typename TupleFilter<T>::Columns columns(part, r);
        filter_.adjust(strip + r, columns, rows_.base[strip + r], p + r * kPanelKeys);
        weigh_row(weigh, strip + r, columns.begin, columns.end, values != nullptr);
        if (!filter_.caps() || !values) continue;
        const int64_t at = r * kPanelKeys + columns.begin;
        multiply_rows(ds + at, ds + at, slopes_ + at, columns.end - columns.begin);
      }
    });
    for (R* const array : {p, ds}) {  // rows of padding
      std::fill(array + count * kPanelKeys, array + kStripRows * kPanelKeys, R{0});
    }
  }

 private:
  template <class Weigher>
  HWY_INLINE void weigh_row(Weigher weigh, int row, int begin, int end, bool want_ds) {
    const Tag<R> d;
    R *const p = rows_.p + row * kPanelKeys, *const ds = rows_.ds + row * kPanelKeys;
    R* const sums = rows_.sums + row * kLineChannels;
    const Vec<R> share = hn::Set(d, rows_.share[row]);
    const DeltaTerm<R>& delta = rows_.delta[row];
    const Vec<R> minus_delta = hn::Set(d, delta.minus_delta);
    HWY_ALIGN R factors[kPanelKeys];
    const bool drops = filter_.drops();
    if (drops) filter_.drop(row, begin, end, factors);
    Vec<R> sum = hn::Load(d, sums);
    for (int c = begin; c < end; c += kLanes<R>) {
      const Vec<R> score = hn::Load(d, p + c);
      const Vec<R> weight = weigh.template weight<R>(score, rows_.norm[row]);
      const Vec<R> factor = drops ? hn::Load(d, factors + c) : hn::Set(d, R{1});
      const Vec<R> dropped = hn::Mul(factor, weight);
      if (want_ds) {
        const Vec<R> slope = weigh.template slope<R>(score, weight, rows_.norm[row]);
        const Vec<R> dp = hn::Add(hn::Load(d, ds + c), share);
        const Vec<R> less_delta = delta.template of<T>(weight, hn::MulAdd(factor, dp, minus_delta));
        hn::Store(hn::Mul(slope, less_delta), d, ds + c);
      }
      hn::Store(dropped, d, p + c);
      sum = hn::Add(sum, dropped);
    }
    hn::Store(sum, d, sums);
  }

  const DenseProblem<T>& problem_;
  BackwardRows<T>& rows_;
  const TupleFilter<T>& filter_;
  HWY_ALIGN R slopes_[kStripRows * kPanelKeys];  // of a strip's soft caps
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// Weights of a strip and gradients of its logits with any options, for one SIMD target (toggled
// guard).
#if defined(NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_BACKWARD_GENERAL_INL_H_
#endif

#include <numeric>

#include "kernels/cpu/shared/backward_rows-inl.h"
#include "kernels/cpu/shared/filter-inl.h"
#include "kernels/cpu/shared/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Adds the gradients of a row's logits to those of the masks. All rows of a query and a head belong
/// to one task, so tasks write to different places unless the gradient broadcasts over heads or
/// batch entries.
template <class T>
class MaskGradients {
  using R = Accum<T>;

 public:
  MaskGradients(const DenseBackward<T>& problem, const Geometry& geometry, int64_t batch)
      : problem_(problem), geometry_(geometry), batch_(batch) {}

  bool wanted() const { return problem_.mask_gradients > 0; }

  void set_row(int row, int64_t head, int64_t query, const TupleWalk& walk) {
    for (int k = 0; k < problem_.mask_gradients; ++k) {
      place_[row][k] = tuple_place(problem_.grad_mask[k], geometry_, batch_, head, query, walk);
    }
  }

  /// `ds` belongs to the panel whose first key is `first`.
  void add(int row, int64_t first, const typename TupleFilter<T>::Columns& columns,
           const R* ds) const {
    for (int k = 0; k < problem_.mask_gradients; ++k) {
      const TupleGradient<R>& gradient = problem_.grad_mask[k];
      const int64_t stride = gradient.axis_stride[geometry_.axis[geometry_.inner()]];
      R* const to = gradient.sum + place_[row][k] + first * stride;
      if (stride == 0) {
        *to += std::accumulate(ds + columns.low, ds + columns.high, R{0});
      } else {
        for (int c = columns.low; c < columns.high; ++c) to[c * stride] += ds[c];
      }
    }
  }

 private:
  const DenseBackward<T>& problem_;
  const Geometry& geometry_;
  const int64_t batch_;
  int64_t place_[Block::kMaxRows][kMaxMasks];  // of the leading tuple
};

/// P and dS of the strip that starts with block row `strip`: first all products, then masks,
/// weights and dropout row by row. With w the weight, w' its derivative and m dropout's factor,
///   P = m w,   dS = w' (m dP - delta).
template <class T, class E>
class GeneralBackward {
  using R = Accum<T>;

 public:
  GeneralBackward(const DenseProblem<T>& problem, BackwardRows<T>& rows,
                  const TupleFilter<T>& filter, const MaskGradients<T>& masks)
      : problem_(problem), rows_(rows), filter_(filter), masks_(masks) {}

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
        if (masks_.wanted()) masks_.add(strip + r, part.first, columns, ds + r * kPanelKeys);
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
  const MaskGradients<T>& masks_;
  HWY_ALIGN R slopes_[kStripRows * kPanelKeys];  // of a strip's soft caps
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

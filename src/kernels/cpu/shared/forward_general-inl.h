// Weights of a strip with any options, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_
#endif

#include <limits>

#include "kernels/cpu/shared/filter-inl.h"
#include "kernels/cpu/shared/forward_rows-inl.h"
#include "kernels/cpu/shared/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Turns scores of the strip that starts with block row `strip` into weights in `rows.p`, in
/// passes: first all raw scores, then every row's masks and maximum, then its weights, sums and
/// dropout. `panel` holds the keys; raw scores of tiles are in `rows.p` already. Additive masks are read first, since the largest one of an item
/// determines the reference of its scores.
template <class T, class E>
class GeneralForward {
  using R = Accum<T>;

 public:
  GeneralForward(const DenseProblem<T>& problem, ForwardRows<T>& rows, const TupleFilter<T>& filter)
      : problem_(problem), rows_(rows), filter_(filter) {}

  void weigh_strip(const PanelPart<R>& part, int strip, const R* panel) {
    const int64_t depth = rows_.geometry.depth;
    const R scale = static_cast<R>(score_scale<E>(rows_.geometry));
    if constexpr (kTiled<E>) {
      scale_strip<E>(part, scale, rows_.p);
    } else {
      multiply_strip<E>(rows_.u + strip * depth, depth, panel, slots<E>(problem_.dim), scale, part,
                        rows_.p);
    }
    if (filter_.caps()) filter_.cap_strip(part, rows_.p, nullptr);
    const int count = std::min(kStripRows, rows_.block.rows - strip);
    const bool adds = filter_.adds_logits();
    for (int r = 0; r < count && adds; ++r) read_logits(part, strip, r);
    for (int r = 0; r < count; ++r) {
      const Columns columns(part, r);
      R* const scores = rows_.p + r * kPanelKeys;
      if (adds) {
        const R base = rows_.state[rows_.block.item[strip + r]].base;
        filter_.add_logits(logits_[r], base, columns, scores);
      } else {
        filter_.exclude(strip + r, columns, scores);
      }
      note_maximum(strip + r, columns.begin, columns.end, scores);
    }
    const Columns whole(part, 0);
    with_weigh(problem_.normalizer, [&](auto weigh) HWY_ATTR {
      for (int r = 0; r < count; ++r) {
        weigh_row(weigh, strip + r, whole.begin, whole.end, rows_.p + r * kPanelKeys);
      }
    });
    // Rows of padding.
    std::fill(rows_.p + count * kPanelKeys, rows_.p + kStripRows * kPanelKeys, R{0});
  }

 private:
  using Columns = typename TupleFilter<T>::Columns;

  // The mask's logits for row `r` of a strip. All rows of an item are read before any score of the
  // strip is made relative to its base.
  void read_logits(const PanelPart<R>& part, int strip, int r) {
    const Columns columns(part, r);
    logits_[r] = filter_.read_logits(strip + r, columns, room_ + r * kPanelKeys);
    if (!exponential(problem_.normalizer)) return;
    const SoftmaxState<R>& state = rows_.state[rows_.block.item[strip + r]];
    const R largest = filter_.outgrowing(state, columns, logits_[r]);
    if (HWY_UNLIKELY(state.outgrown_by(largest))) rows_.move_base(largest, strip + r);
  }

  // Raises the item's maximum if a score requires it. Normalisers without exponentials only need to
  // know that there was a tuple; a maximum of 0 says so.
  void note_maximum(int row, int begin, int end, const R* scores) {
    const Tag<R> d;
    Vec<R> largest = hn::Load(d, scores + begin);
    for (int c = begin + kLanes<R>; c < end; c += kLanes<R>) {
      largest = hn::Max(hn::Load(d, scores + c), largest);
    }
    const R top = hn::GetLane(hn::MaxOfLanes(d, largest));
    // Highway 1.0.3's EMU128 returns the lowest finite number for minus infinity.
    if (top <= std::numeric_limits<R>::lowest()) return;
    const R logit = exponential(problem_.normalizer) ? top : R{0};
    // Weights of other strips are in Y or wait, and those of this strip do not exist yet.
    if (rows_.state[rows_.block.item[row]].exceeded_by(logit)) rows_.raise_item(logit, row);
  }

  template <class Weigher>
  HWY_INLINE void weigh_row(Weigher weigh, int row, int begin, int end, R* p) {
    const Tag<R> d;
    const R norm = problem_.normalizer == Normalizer::relu ? R{1} : rows_.bias[row];
    HWY_ALIGN R factors[kPanelKeys];
    if (filter_.drops()) filter_.drop(row, begin, end, factors);
    Vec<R> sum = hn::Zero(d), value_sum = hn::Zero(d);
    for (int c = begin; c < end; c += kLanes<R>) {
      Vec<R> weight = weigh.template weight<R>(hn::Load(d, p + c), norm);
      sum = hn::Add(sum, weight);
      if (filter_.drops()) weight = hn::Mul(weight, hn::Load(d, factors + c));
      value_sum = hn::Add(value_sum, weight);
      hn::Store(weight, d, p + c);
    }
    const auto add = [d](R* to, Vec<R> lanes)
                         HWY_ATTR { hn::Store(hn::Add(hn::Load(d, to), lanes), d, to); };
    add(rows_.sums + row * kLanes<R>, sum);
    if (filter_.drops()) add(rows_.value_sums + row * kLanes<R>, value_sum);
  }

  const DenseProblem<T>& problem_;
  ForwardRows<T>& rows_;
  const TupleFilter<T>& filter_;
  const R* logits_[kStripRows];                // of a strip's rows, where the mask adds any
  HWY_ALIGN R room_[kStripRows * kPanelKeys];  // for rows that cannot be read in place
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

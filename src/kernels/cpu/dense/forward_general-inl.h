// Weights of a strip under any options, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FORWARD_GENERAL_INL_H_
#endif

#include <limits>

#include "kernels/cpu/dense/filter-inl.h"
#include "kernels/cpu/dense/forward_rows-inl.h"
#include "kernels/cpu/dense/weights-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Scores of the strip that starts with block row `strip` to weights in `rows.p`, in three passes:
/// all scores as they come, then every row's masks and maximum, then its weights, sums and dropout.
/// `panel` holds the keys.
template <class T, class E>
class GeneralForward {
  using R = Accum<T>;

 public:
  GeneralForward(const DenseProblem<T>& problem, ForwardRows<T>& rows, const TupleFilter<T>& filter)
      : problem_(problem), rows_(rows), filter_(filter) {}

  void weigh_strip(const PanelPart<R>& part, int strip, const R* panel) {
    const int64_t depth = rows_.geometry.depth;
    multiply_strip<E>(rows_.u + strip * depth, depth, panel, slots<E>(problem_.dim),
                      static_cast<R>(score_scale<E>(rows_.geometry)), part, rows_.p);
    const int begin = part.vector * kLanes<R>, end = part.vector_end * kLanes<R>;
    const int count = std::min(kStripRows, rows_.block.rows - strip);
    for (int r = 0; r < count; ++r) {
      const bool masked = part.masking != Masking::none;
      filter_.adjust(strip + r, begin, end, masked ? part.low[r] : begin,
                     masked ? part.high[r] : end, rows_.p + r * kPanelKeys);
      note_maximum(strip + r, begin, end, rows_.p + r * kPanelKeys);
    }
    with_weigh(problem_.normalizer, [&](auto weigh) HWY_ATTR {
      for (int r = 0; r < count; ++r) {
        weigh_row(weigh, strip + r, begin, end, rows_.p + r * kPanelKeys);
      }
    });
    // Rows of padding.
    std::fill(rows_.p + count * kPanelKeys, rows_.p + kStripRows * kPanelKeys, R{0});
  }

 private:
  // Raises the item's maximum where a score asks for it. Normalisers without exponentials only need
  // to know that there was a tuple, which a maximum of 0 tells.
  void note_maximum(int row, int begin, int end, const R* scores) {
    const Tag<R> d;
    Vec<R> largest = hn::Load(d, scores + begin);
    for (int c = begin + kLanes<R>; c < end; c += kLanes<R>) {
      largest = hn::Max(hn::Load(d, scores + c), largest);
    }
    const R top = hn::GetLane(hn::MaxOfLanes(d, largest));
    // Highway 1.0.3's EMU128 makes the lowest finite number of minus infinity.
    if (top <= std::numeric_limits<R>::lowest()) return;
    const bool exponential = problem_.normalizer == Normalizer::softmax ||
                             problem_.normalizer == Normalizer::softmax_sink;
    const R logit = exponential ? top : R{0};
    // Other strips' weights are in Y already, this strip's do not exist yet.
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
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

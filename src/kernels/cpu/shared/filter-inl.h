// The effect of options beyond windows on a block's scores and weights, row by row, for one SIMD
// target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include <hwy/contrib/math/math-inl.h>
#include "kernels/common/tuple_hash.h"
#include "kernels/cpu/shared/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The place of a leading tuple, with key 0 of the inner axis.
HWY_INLINE int64_t tuple_place(const TuplePlaces& places, const Geometry& geometry, int64_t batch,
                               int64_t head, int64_t query, const TupleWalk& walk) {
  int64_t at = places.row(batch, head, query);
  for (int p = 0; p < geometry.inner(); ++p) at += walk[p] * places.axis_stride[geometry.axis[p]];
  return at;
}

/// Masks that are not intervals of the inner axis, and dropout. The owner sets the tuples of every
/// row of a block, then every panel before it processes the panel's rows.
template <class T>
class TupleFilter {
  using R = Accum<T>;

 public:
  TupleFilter(const DenseProblem<T>& problem, const Geometry& geometry, int64_t batch)
      : problem_(problem), geometry_(geometry), batch_(batch) {
    const DenseAxis<T>& axis = inner_axis();
    if (axis.mask) key_mask_ = axis.mask + batch * axis.visible.length;
    for (int k = 0; k < problem.masks; ++k) {
      if (problem.mask[k].logits) {
        additive_[additive_count_++] = k;
      } else if (inner_stride(k) != 0) {  // TupleWalk applies the others
        boolean_[boolean_count_++] = k;
      }
    }
    if (drops()) {
      threshold_ = drop_threshold(problem.dropout.p);
      kept_ = static_cast<R>(1.0 / (1.0 - problem.dropout.p));
    }
  }

  /// Whether scores must be checked one by one. Otherwise intervals and the choice of leading
  /// tuples decide everything.
  bool general() const {
    return key_mask_ || drops() || boolean_count_ > 0 || adds_logits() ||
           problem_.distinct != Distinct::none || problem_.normalizer == Normalizer::sigmoid ||
           problem_.normalizer == Normalizer::relu || caps();
  }
  bool caps() const { return problem_.softcap > 0.0; }
  bool drops() const { return problem_.dropout.p > 0.0; }
  bool adds_logits() const { return additive_count_ > 0 || problem_.slopes; }

  void set_row(int row, int64_t query_head, int64_t query, const TupleWalk& walk) {
    Row& own = rows_[row];
    for (int k = 0; k < problem_.masks; ++k) {
      own.mask[k] = tuple_place(problem_.mask[k], geometry_, batch_, query_head, query, walk);
    }
    own.hash = hash_row(problem_.dropout.seed, batch_ * problem_.heads + query_head, query);
    own.holes = 0;
    const R slope = problem_.slopes ? problem_.slopes[query_head] : R{0};
    own.bias = R{0};
    for (int p = 0; p < geometry_.inner(); ++p) {
      const int m = geometry_.axis[p];
      if (drops()) own.hash ^= hash_key(m, walk[p]);
      if (problem_.slopes) own.bias -= slope * distance(m, query, walk[p]);
      if (problem_.distinct != Distinct::none) own.hole[own.holes++] = walk[p];
    }
    if (problem_.slopes) {
      own.slope = slope;
      own.position = inner_axis().visible.position(batch_, query);
    }
    if (problem_.distinct == Distinct::with_query) {
      own.hole[own.holes++] = inner_axis().visible.position(batch_, query);
    }
  }

  void start_panel(int64_t first) {
    first_ = first;
    if (key_mask_) {
      const int64_t left = inner_axis().visible.length - first;
      for (int c = 0; c < kPanelKeys; ++c) {
        const bool takes_part = c < left && key_mask_[first + c];
        key_bias_[c] = takes_part ? R{0} : -std::numeric_limits<R>::infinity();
      }
    }
    if (!drops()) return;
    const int m = geometry_.axis[geometry_.inner()];
    for (int c = 0; c < kPanelKeys; ++c) hash_[c] = hash_key(m, first + c);
  }

  /// Columns [begin, end) of a panel, in whole vectors, and those among them that a row may see.
  struct Columns {
    int begin, end, low, high;

    Columns(const PanelPart<R>& part, int row)
        : begin(part.vector * kLanes<R>), end(part.vector_end * kLanes<R>), low(begin), high(end) {
      if (part.masking == Masking::none) return;
      low = std::clamp(part.low[row], begin, end);
      high = std::clamp(part.high[row], low, end);
    }
  };

  /// Sets the scores of a row's inadmissible tuples to minus infinity: columns that it may not see,
  /// and those that the options exclude.
  void exclude(int row, const Columns& columns, R* scores) const {
    const auto [begin, end, low, high] = columns;
    std::fill(scores + begin, scores + low, kNothing);
    std::fill(scores + high, scores + end, kNothing);
    const Row& own = rows_[row];
    for (int i = 0; i < boolean_count_; ++i) {
      const int64_t stride = inner_stride(boolean_[i]);
      const bool* const admissible =
          in_panel(problem_.mask[boolean_[i]].admissible, own, boolean_[i]);
      for (int c = low; c < high; ++c) scores[c] = admissible[c * stride] ? scores[c] : kNothing;
    }
    if (key_mask_) {
      const Tag<R> d;
      for (int c = begin; c < end; c += kLanes<R>) {
        const Vec<R> bias = hn::Load(d, key_bias_ + c);
        const auto takes_part = hn::Eq(bias, hn::Zero(d));
        hn::Store(hn::IfThenElse(takes_part, hn::Load(d, scores + c), bias), d, scores + c);
      }
    }
    for (int h = 0; h < own.holes; ++h) {
      const int64_t c = own.hole[h] - first_;
      if (c >= low && c < high) scores[c] = kNothing;
    }
  }

  /// The logits that masks and ALiBi add to a row's scores; minus infinity for inadmissible tuples.
  /// Those of one mask are read in place if all are admissible. Otherwise they are copied to `room`.
  const R* read_logits(int row, const Columns& columns, R* room) const {
    const Row& own = rows_[row];
    const bool all = columns.low == columns.begin && columns.high == columns.end && !key_mask_ &&
                     boolean_count_ == 0 && own.holes == 0;
    if (all && additive_count_ == 1 && !problem_.slopes && inner_stride(additive_[0]) == 1) {
      return in_panel(problem_.mask[additive_[0]].logits, own, additive_[0]);
    }
    start_logits(own, columns, room);
    for (int i = 0; i < additive_count_; ++i) {
      const int64_t stride = inner_stride(additive_[i]);
      const R* const from = in_panel(problem_.mask[additive_[i]].logits, own, additive_[i]);
      if (stride == 1) {
        for (int c = columns.low; c < columns.high; ++c) room[c] += from[c];
      } else {
        for (int c = columns.low; c < columns.high; ++c) room[c] += from[c * stride];
      }
    }
    exclude(row, columns, room);
    return room;
  }

  /// The largest of the logits just read, if it could require another base for an item's state;
  /// otherwise minus infinity.
  static R outgrowing(const SoftmaxState<R>& state, const Columns& columns, const R* logits) {
    const Tag<R> d;
    Vec<R> largest = hn::LoadU(d, logits + columns.begin);
    for (int c = columns.begin + kLanes<R>; c < columns.end; c += kLanes<R>) {
      largest = hn::Max(hn::LoadU(d, logits + c), largest);
    }
    // Usually the lanes decide without a comparison between them.
    const Vec<R> above = hn::Set(d, state.base + SoftmaxState<R>::kNear);
    const Vec<R> below = hn::Set(d, state.base - SoftmaxState<R>::kNear);
    const bool near = hn::AllTrue(d, hn::Le(largest, above)) &&
                      (!state.fresh() || !hn::AllFalse(d, hn::Ge(largest, below)));
    if (HWY_LIKELY(near)) return kNothing;
    // Highway 1.0.3's EMU128 has the lowest finite number as the maximum of minus infinities.
    if (hn::AllTrue(d, hn::Eq(largest, hn::Set(d, kNothing)))) return kNothing;
    return hn::GetLane(hn::MaxOfLanes(d, largest));
  }

  /// Adds the logits just read to scores, relative to `base` (see SoftmaxState).
  void add_logits(const R* logits, R base, const Columns& columns, R* scores) const {
    if (std::abs(base) > kExactBase) return add_in_double(logits, base, columns, scores);
    if (problem_.normalizer == Normalizer::sigmoid) {
      return add_vectors</*kFinite=*/true>(logits, base, columns, scores);
    }
    add_vectors</*kFinite=*/false>(logits, base, columns, scores);
  }

  /// Both in one: adjusts a row's scores for its options.
  void adjust(int row, const Columns& columns, R base, R* scores) const {
    if (!adds_logits()) return exclude(row, columns, scores);
    HWY_ALIGN R room[kPanelKeys];
    add_logits(read_logits(row, columns, room), base, columns, scores);
  }

  /// Caps the scores of a strip, c tanh(x / c), and writes the derivatives of the results if they
  /// are wanted: 1 - tanh^2(x / c).
  void cap_strip(const PanelPart<R>& part, R* scores, R* slopes) const {
    const Tag<R> d;
    const double unit = problem_.softcap * geometry_.unit;
    const Vec<R> cap = hn::Set(d, static_cast<R>(unit));
    const Vec<R> inverse = hn::Set(d, static_cast<R>(1.0 / unit));
    for (int r = 0; r < kStripRows; ++r) {
      for (int v = part.vector; v < part.vector_end; ++v) {
        const int64_t at = r * kPanelKeys + v * kLanes<R>;
        const Vec<R> x = hn::Mul(hn::Load(d, scores + at), inverse);
        // Highway's function has a number for NaN.
        const Vec<R> y = hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
        hn::Store(hn::Mul(cap, y), d, scores + at);
        if (slopes) hn::Store(hn::NegMulAdd(y, y, hn::Set(d, R{1})), d, slopes + at);
      }
    }
  }

  /// Dropout's factors of a row's weights in columns [begin, end), whole vectors.
  void drop(int row, int begin, int end, R* factors) const {
    const uint32_t hash = rows_[row].hash;
    if constexpr (std::is_same_v<R, float>) {
      for (int c = begin; c < end; c += kLanes<R>) drop_vector(hash, c, factors);
    } else {
      for (int c = begin; c < end; ++c) {
        factors[c] = keeps_tuple(hash ^ hash_[c], threshold_) ? kept_ : R{0};
      }
    }
  }

 private:
  struct Row {
    int64_t mask[kMaxMasks];  // offset of the leading tuple in each mask
    uint32_t hash;            // of the row and its leading keys
    int holes;                // inner keys that `distinct` excludes
    R bias, slope;            // of ALiBi: that of the leading keys, and the head's
    int64_t position;         // of the query on the inner axis
    int64_t hole[kMaxOrder];
  };

  static constexpr R kNothing = -std::numeric_limits<R>::infinity();
  // Masks up to 2^32 leave a score in fp64 accurate to 5e-7, as much as exact differences of masks
  // do in fp32.
  static constexpr R kExactBase = 4294967296;
  // For a mask relative to the base and a score: the weight is 0, but the score is not minus
  // infinity.
  static constexpr R kLeast = std::numeric_limits<R>::lowest() / 4;

  // Below the smallest number, sums are rounded to minus infinity unless they must be finite: a
  // weight of sigmoid is also 0 there, but belongs to a tuple.
  template <bool kFinite>
  HWY_INLINE void add_vectors(const R* logits, R base, const Columns& columns, R* scores) const {
    const Tag<R> d;
    const Vec<R> nothing = hn::Set(d, kNothing), least = hn::Set(d, kLeast);
    const Vec<R> common = hn::Set(d, base), unit = hn::Set(d, static_cast<R>(geometry_.unit));
    for (int c = columns.begin; c < columns.end; c += kLanes<R>) {
      const Vec<R> logit = hn::LoadU(d, logits + c);
      Vec<R> more = hn::Sub(logit, common);
      if constexpr (kFinite) more = hn::IfThenElse(hn::Lt(more, least), least, more);
      const Vec<R> sum = hn::MulAdd(unit, more, hn::Load(d, scores + c));
      // An inadmissible tuple hides its score, even NaN.
      hn::Store(hn::IfThenElse(hn::Eq(logit, nothing), nothing, sum), d, scores + c);
    }
  }

  // The part of a score that remains beside such a mask in fp64: none beside the largest.
  void add_in_double(const R* logits, R base, const Columns& columns, R* scores) const {
    for (int c = columns.begin; c < columns.end; ++c) {
      const double whole = static_cast<double>(scores[c]) * kLn2 + logits[c];
      const double score = std::max<double>((whole - base) * kLog2E, kLeast);
      scores[c] = logits[c] == kNothing ? kNothing : static_cast<R>(score);
    }
  }

  // What ALiBi adds to the logits of a row's tuples.
  void start_logits(const Row& own, const Columns& columns, R* room) const {
    if (!problem_.slopes) {
      std::fill(room + columns.low, room + columns.high, R{0});
      return;
    }
    const R from = static_cast<R>(own.position - first_);
    for (int c = columns.low; c < columns.high; ++c) {
      room[c] = own.bias - own.slope * std::abs(from - static_cast<R>(c));
    }
  }

  R distance(int axis, int64_t query, int64_t key) const {
    return static_cast<R>(std::abs(problem_.axes[axis].visible.position(batch_, query) - key));
  }

  // The step of a mask from a key of the inner axis to the next.
  int64_t inner_stride(int mask) const {
    return problem_.mask[mask].axis_stride[geometry_.axis[geometry_.inner()]];
  }

  // A mask's number for a row's tuple in the panel's first column.
  template <class Number>
  const Number* in_panel(const Number* numbers, const Row& own, int mask) const {
    return numbers + own.mask[mask] + first_ * inner_stride(mask);
  }

  // keeps_tuple() for vectors.
  HWY_INLINE void drop_vector(uint32_t hash, int column, float* factors) const {
    const Tag<float> d;
    const hn::RebindToUnsigned<Tag<float>> du;
    const hn::RebindToSigned<Tag<float>> di;
    auto x = hn::Xor(hn::Set(du, hash), hn::Load(du, hash_ + column));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, uint32_t{0x85EBCA6B}));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(du, uint32_t{0xC2B2AE35}));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    // The comparison is for signed numbers, so the upper bit is flipped.
    constexpr uint32_t kUpper = 0x80000000u;
    const auto drawn = hn::BitCast(di, hn::Xor(x, hn::Set(du, kUpper)));
    const auto least = hn::BitCast(di, hn::Set(du, threshold_ ^ kUpper));
    const auto dropped = hn::RebindMask(d, hn::Lt(drawn, least));
    hn::Store(hn::IfThenZeroElse(dropped, hn::Set(d, kept_)), d, factors + column);
  }

  const DenseAxis<T>& inner_axis() const {
    return problem_.axes[geometry_.axis[geometry_.inner()]];
  }

  const DenseProblem<T>& problem_;
  const Geometry& geometry_;
  const int64_t batch_;
  const bool* key_mask_ = nullptr;  // of the inner axis
  int additive_count_ = 0, boolean_count_ = 0;
  int additive_[kMaxMasks], boolean_[kMaxMasks];  // masks by kind
  uint32_t threshold_ = 0;
  R kept_ = R{1};
  Row rows_[Block::kMaxRows];
  int64_t first_ = 0;                    // key of the panel's first column
  HWY_ALIGN uint32_t hash_[kPanelKeys];  // of the panel's keys
  HWY_ALIGN R key_bias_[kPanelKeys];     // 0 for keys that take part, otherwise minus infinity
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// What options beyond windows do to a block's scores and weights, row by row, for one SIMD target
// (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_FILTER_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/common/tuple_hash.h"
#include "kernels/cpu/dense/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The masks that are no intervals of the inner axis, and dropout. Its owner names the tuples of
/// every row of a block, then every panel before its rows are looked at.
template <class T>
class TupleFilter {
  using R = Accum<T>;

 public:
  TupleFilter(const DenseProblem<T>& problem, const Geometry& geometry, int64_t batch)
      : problem_(problem), geometry_(geometry), batch_(batch) {
    const DenseAxis<T>& axis = inner_axis();
    if (axis.mask) key_mask_ = axis.mask + batch * axis.visible.length;
    if (drops()) {
      threshold_ = drop_threshold(problem.dropout.p);
      kept_ = static_cast<R>(1.0 / (1.0 - problem.dropout.p));
    }
  }

  /// Whether scores have to be looked at one by one. Otherwise all is decided by intervals and by
  /// which leading tuples there are.
  bool general() const {
    return key_mask_ || drops() || problem_.mask.present() || problem_.distinct != Distinct::none ||
           problem_.normalizer == Normalizer::sigmoid || problem_.normalizer == Normalizer::relu;
  }
  bool drops() const { return problem_.dropout.p > 0.0; }

  void set_row(int row, int64_t query_head, int64_t query, const TupleWalk& walk) {
    const TupleMask<T>& mask = problem_.mask;
    Row& own = rows_[row];
    own.mask =
        batch_ * mask.batch_stride + query_head * mask.head_stride + query * mask.query_stride;
    own.hash = hash_row(problem_.dropout.seed, batch_ * problem_.heads + query_head, query);
    own.holes = 0;
    for (int p = 0; p < geometry_.inner(); ++p) {
      const int m = geometry_.axis[p];
      own.mask += walk[p] * mask.axis_stride[m];
      if (drops()) own.hash ^= hash_key(m, walk[p]);
      if (problem_.distinct != Distinct::none) own.hole[own.holes++] = walk[p];
    }
    if (problem_.distinct == Distinct::with_query) {
      own.hole[own.holes++] = query + inner_axis().visible.offset;
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

  /// Adds the mask's logits to a row's scores and makes those of inadmissible tuples minus
  /// infinity: columns [begin, end) but outside [low, high), and what the options exclude.
  void adjust(int row, int begin, int end, int low, int high, R* scores) const {
    constexpr R kNothing = -std::numeric_limits<R>::infinity();
    low = std::clamp(low, begin, end);
    high = std::clamp(high, low, end);
    std::fill(scores + begin, scores + low, kNothing);
    std::fill(scores + high, scores + end, kNothing);
    const Row& own = rows_[row];
    const int64_t stride = problem_.mask.axis_stride[geometry_.axis[geometry_.inner()]];
    const int64_t mask = own.mask + first_ * stride;
    if (problem_.mask.logits) add_logits(problem_.mask.logits + mask, stride, low, high, scores);
    if (problem_.mask.admissible) {
      const bool* const admissible = problem_.mask.admissible + mask;
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
    int64_t mask;   // offset of the leading tuple in the mask
    uint32_t hash;  // of the row and its leading keys
    int holes;      // inner keys that `distinct` excludes
    int64_t hole[kMaxOrder];
  };

  void add_logits(const R* logits, int64_t stride, int begin, int end, R* scores) const {
    constexpr R kNothing = -std::numeric_limits<R>::infinity();
    const R unit = static_cast<R>(geometry_.unit);
    int c = begin;
    if (stride == 1) {
      const Tag<R> d;
      const Vec<R> nothing = hn::Set(d, kNothing), factor = hn::Set(d, unit);
      for (; c + kLanes<R> <= end; c += kLanes<R>) {
        const Vec<R> more = hn::LoadU(d, logits + c);
        const Vec<R> sum = hn::MulAdd(factor, more, hn::LoadU(d, scores + c));
        // A tuple that does not take part hides what it would have scored, NaN too.
        hn::StoreU(hn::IfThenElse(hn::Eq(more, nothing), nothing, sum), d, scores + c);
      }
    }
    for (; c < end; ++c) {
      const R more = logits[c * stride];
      scores[c] = more == kNothing ? kNothing : scores[c] + unit * more;
    }
  }

  // keeps_tuple() by vectors.
  HWY_INLINE void drop_vector(uint32_t hash, int column, float* factors) const {
    const Tag<float> d;
    const hn::RebindToUnsigned<Tag<float>> du;
    const hn::RebindToSigned<Tag<float>> di;
    auto x = hn::Xor(hn::Set(du, hash), hn::Load(du, hash_ + column));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, uint32_t{0x85EBCA6B}));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(du, uint32_t{0xC2B2AE35}));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    // Comparing is for signed numbers: the upper bit changes sides.
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
  uint32_t threshold_ = 0;
  R kept_ = R{1};
  Row rows_[kBlockRows];
  int64_t first_ = 0;                    // key of the panel's first column
  HWY_ALIGN uint32_t hash_[kPanelKeys];  // of the panel's keys
  HWY_ALIGN R key_bias_[kPanelKeys];     // 0 for keys that take part, else minus infinity
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

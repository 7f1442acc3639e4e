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
    if (problem_.mask.logits) {
      const R* const logits = problem_.mask.logits + own.mask + first_ * stride;
      const R unit = static_cast<R>(geometry_.unit);
      for_columns(low, high, stride, [&](int c, int64_t at) HWY_ATTR {
        scores[c] = logits[at] == kNothing ? kNothing : scores[c] + unit * logits[at];
      });
    }
    if (problem_.mask.admissible) {
      const bool* const admissible = problem_.mask.admissible + own.mask + first_ * stride;
      for_columns(low, high, stride, [&](int c, int64_t at) HWY_ATTR {
        scores[c] = admissible[at] ? scores[c] : kNothing;
      });
    }
    if (key_mask_) {
      for (int c = low; c < high; ++c) scores[c] = key_mask_[first_ + c] ? scores[c] : kNothing;
    }
    for (int h = 0; h < own.holes; ++h) {
      const int64_t c = own.hole[h] - first_;
      if (c >= low && c < high) scores[c] = kNothing;
    }
  }

  /// Dropout's factors of a row's weights in columns [begin, end).
  void drop(int row, int begin, int end, R* factors) const {
    const uint32_t hash = rows_[row].hash;
    for (int c = begin; c < end; ++c) {
      factors[c] = keeps_tuple(hash ^ hash_[c], threshold_) ? kept_ : R{0};
    }
  }

 private:
  struct Row {
    int64_t mask;   // offset of the leading tuple in the mask
    uint32_t hash;  // of the row and its leading keys
    int holes;      // inner keys that `distinct` excludes
    int64_t hole[kMaxOrder];
  };

  // body(c, c * stride), the frequent strides as constants: compilers then use vectors.
  template <class Body>
  static HWY_INLINE void for_columns(int begin, int end, int64_t stride, Body&& body) {
    if (stride == 1) {
      for (int c = begin; c < end; ++c) body(c, c);
    } else {
      for (int c = begin; c < end; ++c) body(c, c * stride);
    }
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
  int64_t first_ = 0;          // key of the panel's first column
  uint32_t hash_[kPanelKeys];  // of the panel's keys
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

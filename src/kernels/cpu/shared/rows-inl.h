// The GEMM rows of the dense kernel, (query, head, leading tuple), gathered into blocks. For one
// SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_ROWS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_ROWS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cpu/shared/exp2-inl.h"
#include "kernels/cpu/shared/geometry.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Allocates aligned arrays from a task's scratch. It rounds like the scratch sizes in plans.
template <class R>
class Arena {
 public:
  explicit Arena(R* memory) : next_(memory) {}
  R* take(int64_t count) {
    R* const taken = next_;
    next_ += round_up(count, kLineChannels);
    return taken;
  }

 private:
  R* next_;
};

// The factor that takes the scale of a logit, s1 times the unit: the query, or, at order 1 of
// pairs, the sums. A bf16 query is an operand of that product as it is, and scaling would round it
// again. With more axes its products with the leading keys are rounded once in either case.
// Gradients of keys are products with queries and take the rest.
template <class E>
bool scales_sums(const Geometry& geometry) {
  return kNumbers<E> == 2 && geometry.order == 1;
}
template <class E>
double query_scale(const Geometry& geometry) {
  return scales_sums<E>(geometry) ? 1.0 : geometry.logit_scale * geometry.unit;
}
template <class E>
double score_scale(const Geometry& geometry) {
  return scales_sums<E>(geometry) ? geometry.logit_scale * geometry.unit : 1.0;
}
template <class E>
double key_gradient_scale(const Geometry& geometry) {
  return scales_sums<E>(geometry) ? geometry.logit_scale : 1.0 / geometry.unit;
}

/// to = a o b over a multiple of kLineChannels channels; all aligned.
template <class R>
HWY_INLINE void multiply_rows(R* to, const R* a, const R* b, int64_t width) {
  const Tag<R> d;
  for (int64_t c = 0; c < width; c += kLanes<R>) {
    hn::Store(hn::Mul(hn::Load(d, a + c), hn::Load(d, b + c)), d, to + c);
  }
}

/// to = a + b.
template <class R>
HWY_INLINE void add_rows(R* to, const R* a, const R* b, int64_t width) {
  const Tag<R> d;
  for (int64_t c = 0; c < width; c += kLanes<R>) {
    hn::Store(hn::Add(hn::Load(d, a + c), hn::Load(d, b + c)), d, to + c);
  }
}

/// to *= factor.
template <class R>
HWY_INLINE void scale_row(R* to, R factor, int64_t width) {
  const Tag<R> d;
  const Vec<R> f = hn::Set(d, factor);
  for (int64_t c = 0; c < width; c += kLanes<R>)
    hn::Store(hn::Mul(hn::Load(d, to + c), f), d, to + c);
}

/// The tuples of the leading axes for one query, in lexicographic order:
///   for (TupleWalk walk(..); walk.next();) ..
class TupleWalk {
 public:
  template <class T>
  TupleWalk(const DenseProblem<T>& problem, const Geometry& geometry, int64_t batch, int64_t head,
            int64_t query)
      : leading_(geometry.inner()), distinct_(problem.distinct) {
    for (int k = 0; k < problem.masks; ++k) {
      const TupleMask<T>& mask = problem.mask[k];
      if (!mask.admissible || mask.axis_stride[geometry.axis[leading_]] != 0) continue;
      RowMask& own = row_masks_[row_mask_count_++];
      own.admissible = mask.admissible + mask.row(batch, head, query);
      for (int p = 0; p < leading_; ++p) own.stride[p] = mask.axis_stride[geometry.axis[p]];
    }
    for (int p = 0; p < leading_; ++p) {
      const DenseAxis<T>& axis = problem.axes[geometry.axis[p]];
      range_[p] = axis.visible.of(batch, query);
      empty_ |= range_[p].size() == 0;
      index_[p] = range_[p].begin;
      own_[p] = axis.visible.position(batch, query);
      mask_[p] = axis.mask ? axis.mask + batch * axis.visible.length : nullptr;
    }
    if (leading_ > 0) --index_[leading_ - 1];
  }

  int64_t operator[](int position) const { return index_[position]; }

  /// First position whose key differs from the previous tuple.
  int changed() const { return changed_; }

  /// Goes to the next tuple, initially the first; false if there is none.
  bool next() {
    if (empty_) return false;
    // The first tuple changes every position; without leading axes it is the only one.
    changed_ = std::exchange(first_, false) ? 0 : leading_;
    if (leading_ == 0) {
      empty_ = true;
      return takes_part();
    }
    do {
      int p = leading_ - 1;
      while (++index_[p] >= range_[p].end) {
        if (p == 0) return false;
        index_[p] = range_[p].begin;
        --p;
      }
      changed_ = std::min(changed_, p);
    } while (!takes_part());
    return true;
  }

 private:
  bool takes_part() const {
    for (int p = 0; p < leading_; ++p) {
      if (mask_[p] && !mask_[p][index_[p]]) return false;
      if (distinct_ == Distinct::none) continue;
      if (distinct_ == Distinct::with_query && index_[p] == own_[p]) return false;
      for (int other = 0; other < p; ++other) {
        if (index_[p] == index_[other]) return false;
      }
    }
    for (int k = 0; k < row_mask_count_; ++k) {
      int64_t at = 0;
      for (int p = 0; p < leading_; ++p) at += index_[p] * row_masks_[k].stride[p];
      if (!row_masks_[k].admissible[at]) return false;
    }
    return true;
  }

  // A mask that is the same for all keys of the inner axis: it decides about the whole row.
  struct RowMask {
    const bool* admissible;
    int64_t stride[kMaxOrder];
  };

  int leading_, changed_ = 0;
  bool empty_ = false, first_ = true;
  Distinct distinct_;
  Range range_[kMaxOrder];
  int64_t index_[kMaxOrder], own_[kMaxOrder];
  const bool* mask_[kMaxOrder];
  int row_mask_count_ = 0;
  RowMask row_masks_[kMaxMasks];
};

/// Bookkeeping of the rows of one block.
struct Block {
  static constexpr int kMaxRows = std::max(kBlockRows, kBackwardRows);
  const int capacity;
  int rows = 0;
  int item[kMaxRows];     ///< (query, head) of the row, counted within the chunk
  Range inner[kMaxRows];  ///< keys of the inner axis it may see; neither end decreases
  int64_t tuple[kMaxRows][kMaxOrder];

  explicit Block(int capacity) : capacity(capacity) {}

  bool full() const { return rows == capacity; }
  int strips() const { return static_cast<int>(ceil_div(rows, kStripRows)); }
  int padded_rows() const { return strips() * kStripRows; }

  /// Adds rows of zeros without an item, to fill the last strip.
  template <class R>
  void pad(R* u, int64_t depth) {
    for (int r = rows; r < padded_rows(); ++r) {
      item[r] = kChunkItems;
      inner[r] = inner[rows - 1];
      std::fill(u + r * depth, u + (r + 1) * depth, R{0});
    }
  }

  /// Rows [first, second) belong to the same item as `row`.
  std::pair<int, int> rows_of_item(int row) const {
    int begin = row, end = row + 1;
    while (begin > 0 && item[begin - 1] == item[row]) --begin;
    while (end < rows && item[end] == item[row]) ++end;
    return {begin, end};
  }

  /// Keys that some row may see.
  Range hull() const { return {inner[0].begin, inner[rows - 1].end}; }
};

enum class Masking {
  none,    ///< every row sees every column that is computed
  common,  ///< all rows of the strip see the same columns
  each     ///< every row has its own columns
};

/// The part of a panel that a strip (or a whole block) needs.
template <class R>
struct PanelPart {
  /// Columns are computed by vectors, and at least by the groups of eight that sums over rows take.
  static constexpr int kUnit = kLanes<R> < 8 ? 8 : kLanes<R>;

  int64_t first = 0;               ///< key in column 0
  int begin = 0, end = 0;          ///< columns that some row may see; nothing when end <= begin
  int vector = 0, vector_end = 0;  ///< vectors that hold them
  Masking masking = Masking::none;
  int low[kStripRows], high[kStripRows];  ///< columns that each row may see, if masked

  PanelPart() = default;
  PanelPart(int64_t first, Range hull)
      : first(first),
        begin(static_cast<int>(std::max<int64_t>(hull.begin - first, 0))),
        end(static_cast<int>(std::min<int64_t>(hull.end - first, kPanelKeys))),
        vector(begin / kUnit * kUnit / kLanes<R>),
        vector_end(static_cast<int>(round_up(end, kUnit)) / kLanes<R>) {}

  /// For the strip whose rows start with `rows`.
  PanelPart(int64_t first, const Range* rows)
      : PanelPart(first, {rows[0].begin, rows[kStripRows - 1].end}) {
    const Range core{rows[kStripRows - 1].begin, rows[0].end};
    if (core.begin <= first + vector * kLanes<R> && core.end >= first + vector_end * kLanes<R>)
      return;
    const bool same = rows[0].begin == core.begin && rows[kStripRows - 1].end == core.end;
    masking = same ? Masking::common : Masking::each;
    for (int r = 0; r < kStripRows; ++r) {
      low[r] = static_cast<int>(std::clamp<int64_t>(rows[r].begin - first, 0, kPanelKeys));
      high[r] = static_cast<int>(std::clamp<int64_t>(rows[r].end - first, 0, kPanelKeys));
    }
  }

  bool empty() const { return end <= begin; }
};

/// The parts of a panel that the strips of a block need. A block takes a panel product after
/// product, and every product takes all strips: the panel's operand of one product stays in the
/// first-level cache, which has no room for those of all products.
template <class R>
class PanelStrips {
 public:
  void cut(const Block& block, int64_t first) {
    count_ = 0;
    for (int row = 0; row < block.padded_rows(); row += kStripRows) {
      parts_[count_] = PanelPart<R>(first, block.inner + row);
      rows_[count_] = row;
      if (!parts_[count_].empty()) ++count_;
    }
  }

  /// Calls body(part, first row of the strip) for the strips that need something.
  template <class Body>
  HWY_INLINE void for_each(const Body& body) const {
    for (int i = 0; i < count_; ++i) body(parts_[i], rows_[i]);
  }

  bool empty() const { return count_ == 0; }
  int row_begin() const { return rows_[0]; }
  int row_end() const { return rows_[count_ - 1] + kStripRows; }

 private:
  static constexpr int kMaxStrips = Block::kMaxRows / kStripRows;
  int count_ = 0;
  int rows_[kMaxStrips];
  PanelPart<R> parts_[kMaxStrips];
};

/// Replaces scores that a row may not see by minus infinity, whose weight is exactly 0.
/// `row` counts within the strip.
template <Masking kMasking, class R, int kRows, int kVectors>
HWY_INLINE void mask_scores(Tile<R, kRows, kVectors>& s, const PanelPart<R>& part, int row,
                            int vector) {
  if constexpr (kMasking == Masking::none) return;
  const Tag<R> d;
  const Vec<R> nothing = hn::Set(d, -std::numeric_limits<R>::infinity());
  NSIMPLEX_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int column = (vector + v) * kLanes<R>;
    const auto common = within<R>(column, part.low[0], part.high[0]);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const auto seen = kMasking == Masking::common
                            ? common
                            : within<R>(column, part.low[row + r], part.high[row + r]);
      s.at[r][v] = hn::IfThenElse(seen, s.at[r][v], nothing);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

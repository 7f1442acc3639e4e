// Packed copies of keys and values in the type computed with: aligned, padded, with zeros wherever
// no query may look. For one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "kernels/cpu/dense/convert-inl.h"
#include "kernels/cpu/dense/geometry.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

inline Range intersect(Range a, Range b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.size() > 0 ? both : Range{a.begin, a.begin};
}

/// to[0, padded) = from[0, channels), then zeros.
template <class T, class R>
void copy_padded(R* to, const T* from, int64_t channels, int64_t padded) {
  load_row(to, from, channels);
  std::memset(to + channels, 0, (padded - channels) * sizeof(R));
}

/// Rows `range` of [length, channels] to rows of `padded` channels, zero rows elsewhere in
/// `filled`; row `origin` goes first.
template <class T, class R>
void pack_rows(const Rows<const T>& source, int64_t batch, int64_t head, Range range, Range filled,
               int64_t channels, int64_t padded, int64_t origin, R* to) {
  for (int64_t row = filled.begin; row < filled.end; ++row) {
    R* const packed = to + (row - origin) * padded;
    if (row >= range.begin && row < range.end) {
      copy_padded(packed, source.row(batch, head, row), channels, padded);
    } else {
      std::memset(packed, 0, padded * sizeof(R));
    }
  }
}

/// Four rows of `channels` to four neighbouring columns of a panel, by 4 x 4 transposes.
template <class T>
HWY_INLINE void transpose_four(const T* const (&from)[4], int64_t channels, float* to) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; c + 4 <= channels; c += 4) {
    const auto r0 = load_as(d, from[0] + c), r1 = load_as(d, from[1] + c);
    const auto r2 = load_as(d, from[2] + c), r3 = load_as(d, from[3] + c);
    const auto low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
    const auto high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
    hn::Store(hn::InterleaveLower(d, low02, low13), d, to + c * kPanelKeys);
    hn::Store(hn::InterleaveUpper(d, low02, low13), d, to + (c + 1) * kPanelKeys);
    hn::Store(hn::InterleaveLower(d, high02, high13), d, to + (c + 2) * kPanelKeys);
    hn::Store(hn::InterleaveUpper(d, high02, high13), d, to + (c + 3) * kPanelKeys);
  }
#endif
  for (; c < channels; ++c) {
    for (int row = 0; row < 4; ++row) to[c * kPanelKeys + row] = to_accum(from[row][c]);
  }
}

/// fp64 is packed element by element: its products take four times as long.
inline void transpose_four(const double* const (&from)[4], int64_t channels, double* to) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int row = 0; row < 4; ++row) to[c * kPanelKeys + row] = from[row][c];
  }
}

/// The same transposed: whole panels [channels, kPanelKeys], key `row` in column row % kPanelKeys.
template <class T, class R>
void pack_panels(const Rows<const T>& source, int64_t batch, int64_t head, Range range,
                 Range filled, int64_t channels, int64_t origin, R* to) {
  for (int64_t row = filled.begin; row < filled.end;) {
    const int64_t panel = row / kPanelKeys * kPanelKeys;
    R* const column = to + (panel - origin) * channels + row % kPanelKeys;
    if (row % 4 == 0 && row >= range.begin && row + 4 <= range.end) {
      const T* from[4];
      for (int r = 0; r < 4; ++r) from[r] = source.row(batch, head, row + r);
      transpose_four(from, channels, column);
      row += 4;
      continue;
    }
    const bool inside = row >= range.begin && row < range.end;
    const T* const from = inside ? source.row(batch, head, row) : nullptr;
    for (int64_t c = 0; c < channels; ++c) {
      column[c * kPanelKeys] = inside ? to_accum(from[c]) : R{0};
    }
    ++row;
  }
}

/// Packs keys of every axis of one head: `inner` of the inner axis and `leading` of the others
/// (bounds multiples of kPanelKeys). Only keys that an active query may see are read.
template <class T>
void pack_head(const DenseProblem<T>& problem, const Geometry& geometry, const PackLayout& layout,
               int64_t batch, int64_t head, Range inner, Range leading, Accum<T>* base) {
  const Range active = problem.active_queries(batch);
  for (int p = 0; p < geometry.order; ++p) {
    const bool is_inner = p == geometry.inner();
    const DenseAxis<T>& axis = problem.axes[geometry.axis[p]];
    const Range range =
        intersect(is_inner ? inner : leading, visible_keys(axis.visible, batch, active));
    if (range.size() == 0) continue;
    Range filled = range;
    int64_t origin = 0;
    if (is_inner) {
      origin = layout.inner_begin;
      filled = {range.begin / kPanelKeys * kPanelKeys, round_up(range.end, kPanelKeys)};
      pack_panels(axis.key, batch, head, range, filled, problem.dim, origin, base + layout.keys_t);
    }
    if (layout.keys[p] >= 0) {
      pack_rows(axis.key, batch, head, range, filled, problem.dim, geometry.depth, origin,
                base + layout.keys[p]);
    }
    pack_rows(axis.value, batch, head, range, filled, problem.value_dim, geometry.value_depth,
              origin, base + layout.values[p]);
    if (is_inner && layout.values_t >= 0) {
      pack_panels(axis.value, batch, head, range, filled, problem.value_dim, origin,
                  base + layout.values_t);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

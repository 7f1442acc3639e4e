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

/// A row of channels to their packed places, zeros elsewhere.
template <class T, class R>
void load_channels(R* to, const T* from, const Channels& channels) {
  if (channels.planes == 1) {
    load_row(to, from, channels.chunks);
    std::memset(to + channels.chunks, 0, (channels.padded - channels.chunks) * sizeof(R));
    return;
  }
  std::memset(to, 0, channels.padded * sizeof(R));
  for (int a = 0; a < channels.planes; ++a) {
    R* const plane = to + a * channels.stride;
    for (int64_t c = 0; c < channels.chunks; ++c)
      plane[c] = to_accum(from[c * channels.planes + a]);
  }
}

/// A packed row back to its channels, times `factor`.
template <class T, class R>
void store_channels(T* to, R factor, const R* from, const Channels& channels) {
  if (channels.planes == 1) return store_row(to, factor, from, channels.chunks);
  for (int a = 0; a < channels.planes; ++a) {
    const R* const plane = from + a * channels.stride;
    for (int64_t c = 0; c < channels.chunks; ++c) {
      to[c * channels.planes + a] = from_accum<T>(factor * plane[c]);
    }
  }
}

/// Which rows of an axis are read when packing: the others become zeros.
struct PackedRows {
  Range range;       ///< rows that some query may see
  const bool* mask;  ///< of the batch entry, or null

  bool contains(int64_t row) const {
    return row >= range.begin && row < range.end && (!mask || mask[row]);
  }
  bool contains_four(int64_t row) const {
    return contains(row) && contains(row + 1) && contains(row + 2) && contains(row + 3);
  }
};

/// Rows of [length, channels] to packed rows, zeros for those of `filled` that are not read; row
/// `origin` goes first.
template <class T, class R>
void pack_rows(const Rows<const T>& source, int64_t batch, int64_t head, const PackedRows& read,
               Range filled, const Channels& channels, int64_t origin, R* to) {
  for (int64_t row = filled.begin; row < filled.end; ++row) {
    R* const packed = to + (row - origin) * channels.padded;
    if (read.contains(row)) {
      load_channels(packed, source.row(batch, head, row), channels);
    } else {
      std::memset(packed, 0, channels.padded * sizeof(R));
    }
  }
}

/// Four rows to four neighbouring columns of a panel, by 4 x 4 transposes.
template <class T>
HWY_INLINE void transpose_four(const T* const (&from)[4], const Channels& channels, float* to) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; c + 4 <= channels.count(); c += 4) {
    const auto r0 = load_as(d, from[0] + c), r1 = load_as(d, from[1] + c);
    const auto r2 = load_as(d, from[2] + c), r3 = load_as(d, from[3] + c);
    const auto low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
    const auto high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
    hn::Store(hn::InterleaveLower(d, low02, low13), d, to + channels.place(c) * kPanelKeys);
    hn::Store(hn::InterleaveUpper(d, low02, low13), d, to + channels.place(c + 1) * kPanelKeys);
    hn::Store(hn::InterleaveLower(d, high02, high13), d, to + channels.place(c + 2) * kPanelKeys);
    hn::Store(hn::InterleaveUpper(d, high02, high13), d, to + channels.place(c + 3) * kPanelKeys);
  }
#endif
  for (; c < channels.count(); ++c) {
    float* const to_row = to + channels.place(c) * kPanelKeys;
    for (int row = 0; row < 4; ++row) to_row[row] = to_accum(from[row][c]);
  }
}

/// fp64 is packed element by element: its products take four times as long.
inline void transpose_four(const double* const (&from)[4], const Channels& channels, double* to) {
  for (int64_t c = 0; c < channels.count(); ++c) {
    double* const to_row = to + channels.place(c) * kPanelKeys;
    for (int row = 0; row < 4; ++row) to_row[row] = from[row][c];
  }
}

/// The same transposed: whole panels [channels, kPanelKeys], key `row` in column row % kPanelKeys.
template <class T, class R>
void pack_panels(const Rows<const T>& source, int64_t batch, int64_t head, const PackedRows& read,
                 Range filled, const Channels& channels, int64_t origin, R* to) {
  const int64_t count = channels.count();
  for (int64_t row = filled.begin; row < filled.end;) {
    const int64_t panel = row / kPanelKeys * kPanelKeys;
    R* const column = to + (panel - origin) * count + row % kPanelKeys;
    if (row % 4 == 0 && read.contains_four(row)) {
      const T* from[4];
      for (int r = 0; r < 4; ++r) from[r] = source.row(batch, head, row + r);
      transpose_four(from, channels, column);
      row += 4;
      continue;
    }
    const T* const from = read.contains(row) ? source.row(batch, head, row) : nullptr;
    for (int64_t c = 0; c < count; ++c) {
      column[channels.place(c) * kPanelKeys] = from ? to_accum(from[c]) : R{0};
    }
    ++row;
  }
}

/// Of whole panels of `rows` rows of `width` numbers: neighbouring rows to pairs, where they lie.
inline void pair_panels(Range filled, int64_t origin, int64_t rows, int64_t width, int64_t size,
                        float* to) {
  alignas(64) static constexpr float kNothing[kPanelKeys] = {};
  for (int64_t first = filled.begin; first < filled.end; first += kPanelKeys) {
    float* const panel = to + (first - origin) * size;
    for (int64_t row = 0; row < rows; row += 2) {
      const float* const second = row + 1 < rows ? panel + (row + 1) * width : kNothing;
      pair_rows(panel + row * width, second, width, panel + row / 2 * width);
    }
  }
}

/// Packs keys of every axis of one head: `inner` of the inner axis and `leading` of the others
/// (bounds multiples of kPanelKeys). Only keys that an active query may see are read.
template <class E, class T>
void pack_head(const DenseProblem<T>& problem, const Geometry& geometry, const PackLayout& layout,
               int64_t batch, int64_t head, Range inner, Range leading, Accum<T>* base) {
  const Range active = problem.active_queries(batch);
  for (int p = 0; p < geometry.order; ++p) {
    const bool is_inner = p == geometry.inner();
    const DenseAxis<T>& axis = problem.axes[geometry.axis[p]];
    const PackedRows read{
        intersect(is_inner ? inner : leading, visible_keys(axis.visible, batch, active)),
        axis.mask ? axis.mask + batch * axis.visible.length : nullptr};
    if (read.range.size() == 0) continue;
    Range filled = read.range;
    int64_t origin = 0;
    if (is_inner) {
      origin = layout.inner_begin;
      filled = {filled.begin / kPanelKeys * kPanelKeys, round_up(filled.end, kPanelKeys)};
      pack_panels(axis.key, batch, head, read, filled, geometry.inner_key, origin,
                  base + layout.keys_t);
    }
    if (layout.keys[p] >= 0) {
      pack_rows(axis.key, batch, head, read, filled, geometry.key(p), origin,
                base + layout.keys[p]);
    }
    pack_rows(axis.value, batch, head, read, filled, geometry.value, origin,
              base + layout.values[p]);
    if (is_inner && layout.values_t >= 0) {
      pack_panels(axis.value, batch, head, read, filled, geometry.value, origin,
                  base + layout.values_t);
    }
    if constexpr (kNumbers<E> == 2) {
      if (!is_inner) continue;
      const auto pair_columns = [&](int64_t offset, int64_t channels) {
        if (offset < 0) return;
        pair_panels(filled, origin, channels, kPanelKeys, channels, base + offset);
      };
      const auto pair_keys = [&](int64_t offset, int64_t depth) {
        if (offset < 0) return;
        pair_panels(filled, origin, kPanelKeys, depth, depth, base + offset);
      };
      pair_columns(layout.keys_t, problem.dim);
      pair_columns(layout.values_t, problem.value_dim);
      pair_keys(layout.keys[p], geometry.depth);
      pair_keys(layout.values[p], geometry.value_depth);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

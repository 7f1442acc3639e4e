// Packed copies of keys and values in the computing type: aligned, padded, with zeros for keys that
// no query may see. For one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "kernels/cpu/shared/convert-inl.h"
#include "kernels/cpu/shared/geometry.h"
#include "kernels/cpu/shared/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

inline Range intersect(Range a, Range b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.size() > 0 ? both : Range{a.begin, a.begin};
}

/// Copies a row of channels to their packed places, with zeros elsewhere.
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

/// Copies a packed row back to its channels, times `factor`.
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

/// Which rows of an axis are read when packing; the others become zeros.
struct PackedRows {
  Range range;       ///< rows that some query may see
  const bool* mask;  ///< of the batch entry, or null

  bool contains(int64_t row) const {
    return row >= range.begin && row < range.end && (!mask || mask[row]);
  }
};

/// Copies rows of channels to packed rows; `from(row)` is a row, or null for zeros. Row `origin`
/// goes first.
template <class R, class From>
void pack_rows(const From& from, Range filled, const Channels& channels, int64_t origin, R* to) {
  for (int64_t row = filled.begin; row < filled.end; ++row) {
    R* const packed = to + (row - origin) * channels.padded;
    if (const auto* const source = from(row)) {
      load_channels(packed, source, channels);
    } else {
      std::memset(packed, 0, channels.padded * sizeof(R));
    }
  }
}

/// Copies four rows to four neighbouring columns of a panel, by 4 x 4 transposes.
template <class T>
HWY_INLINE void transpose_four(const T* const (&from)[4], const Channels& channels, float* to) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; c + 4 <= channels.count(); c += 4) {
    float* rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = to + channels.place(c + i) * kPanelKeys;
    kernels::HWY_NAMESPACE::store_turned(load_as(d, from[0] + c), load_as(d, from[1] + c),
                                         load_as(d, from[2] + c), load_as(d, from[3] + c), rows);
  }
#endif
  for (; c < channels.count(); ++c) {
    float* const to_row = to + channels.place(c) * kPanelKeys;
    for (int row = 0; row < 4; ++row) to_row[row] = to_accum(from[row][c]);
  }
}

/// fp64 is packed element by element, since its products take four times as long.
inline void transpose_four(const double* const (&from)[4], const Channels& channels, double* to) {
  for (int64_t c = 0; c < channels.count(); ++c) {
    double* const to_row = to + channels.place(c) * kPanelKeys;
    for (int row = 0; row < 4; ++row) to_row[row] = from[row][c];
  }
}

/// The same transposed: whole panels [channels, kPanelKeys], key `row` in column row % kPanelKeys.
template <class R, class From>
void pack_panels(const From& from, Range filled, const Channels& channels, int64_t origin, R* to) {
  const int64_t count = channels.count(), all = channels.panel_rows();
  for (int64_t row = filled.begin; row < filled.end;) {
    const int64_t panel = row / kPanelKeys * kPanelKeys;
    R* const column = to + (panel - origin) * all + row % kPanelKeys;
    if (row % kPanelKeys == 0) {
      std::memset(column + count * kPanelKeys, 0, (all - count) * kPanelKeys * sizeof(R));
    }
    if (row % 4 == 0) {
      decltype(from(row)) const four[4] = {from(row), from(row + 1), from(row + 2), from(row + 3)};
      if (four[0] && four[1] && four[2] && four[3]) {
        transpose_four(four, channels, column);
        row += 4;
        continue;
      }
    }
    const auto* const source = from(row);
    for (int64_t c = 0; c < count; ++c) {
      column[channels.place(c) * kPanelKeys] = source ? to_accum(source[c]) : R{0};
    }
    ++row;
  }
}

/// For whole panels of `rows` rows of `width` numbers: converts neighbouring rows to pairs in
/// place.
template <class E>
void pair_panels(Range filled, int64_t origin, int64_t rows, int64_t width, int64_t size,
                 float* to) {
  alignas(64) static constexpr float kNothing[kPanelKeys] = {};
  for (int64_t first = filled.begin; first < filled.end; first += kPanelKeys) {
    float* const panel = to + (first - origin) * size;
    for (int64_t row = 0; row < rows; row += 2) {
      const float* const second = row + 1 < rows ? panel + (row + 1) * width : kNothing;
      pair_rows<E>(panel + row * width, second, width, panel + row / 2 * width);
    }
  }
}

/// Packs the axis at `position`: key(row) and value(row) give the channels of the rows `read`, or
/// null for zeros.
template <class E, class R, class Key, class Value>
void pack_axis(const Geometry& geometry, const PackLayout& layout, int position, Range read,
               const Key& key, const Value& value, R* base) {
  const bool is_inner = position == geometry.inner();
  Range filled = read;
  int64_t origin = 0;
  if (is_inner) {
    origin = layout.inner_begin;
    filled = {read.begin / kPanelKeys * kPanelKeys, round_up(read.end, kPanelKeys)};
    pack_panels(key, filled, geometry.inner_key, origin, base + layout.keys_t);
  }
  if (layout.keys[position] >= 0) {
    pack_rows(key, filled, geometry.key(position), origin, base + layout.keys[position]);
  }
  pack_rows(value, filled, geometry.value, origin, base + layout.values[position]);
  if (is_inner && layout.values_t >= 0) {
    pack_panels(value, filled, geometry.value, origin, base + layout.values_t);
  }
  if constexpr (kNumbers<E> == 2) {
    if (!is_inner) return;
    const auto pair_columns = [&](int64_t offset, int64_t channels) {
      if (offset < 0) return;
      pair_panels<E>(filled, origin, channels, kPanelKeys, channels, base + offset);
    };
    const auto pair_keys = [&](int64_t offset, int64_t depth) {
      if (offset < 0) return;
      pair_panels<E>(filled, origin, kPanelKeys, depth, depth, base + offset);
    };
    pair_columns(layout.keys_t, geometry.inner_key.panel_rows());
    pair_columns(layout.values_t, geometry.value.panel_rows());
    pair_keys(layout.keys[position], geometry.depth);
    pair_keys(layout.values[position], geometry.value_depth);
  }
}

/// Packs keys of every axis of one head: `inner` of the inner axis and `leading` of the others
/// (bounds are multiples of kPanelKeys). Only keys that an active query may see are read.
template <class E, class T>
void pack_head(const DenseProblem<T>& problem, const Geometry& geometry, const PackLayout& layout,
               int64_t batch, int64_t head, Range inner, Range leading, Accum<T>* base) {
  const Range active = problem.active_queries(batch);
  for (int p = 0; p < geometry.order; ++p) {
    const DenseAxis<T>& axis = problem.axes[geometry.axis[p]];
    const PackedRows read{intersect(p == geometry.inner() ? inner : leading,
                                    visible_keys(axis.visible, batch, active)),
                          axis.mask ? axis.mask + batch * axis.visible.length : nullptr};
    if (read.range.size() == 0) continue;
    const auto row_of = [&](const Rows<const T>& rows, int64_t row) {
      return read.contains(row) ? rows.row(batch, head, row) : nullptr;
    };
    pack_axis<E>(
        geometry, layout, p, read.range, [&](int64_t row) { return row_of(axis.key, row); },
        [&](int64_t row) { return row_of(axis.value, row); }, base);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

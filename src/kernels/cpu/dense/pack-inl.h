// Packed copies of keys and values: aligned, padded, with zeros wherever no query may look. For one
// SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_PACK_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "kernels/cpu/dense/geometry.h"
#include "kernels/cpu/dense/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

inline Range intersect(Range a, Range b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.size() > 0 ? both : Range{a.begin, a.begin};
}

/// to[0, padded) = from[0, channels), then zeros.
inline void copy_padded(float* to, const float* from, int64_t channels, int64_t padded) {
  std::memcpy(to, from, channels * sizeof(float));
  std::memset(to + channels, 0, (padded - channels) * sizeof(float));
}

/// Rows `range` of [length, channels] to rows of `padded` channels, zero rows elsewhere in
/// `filled`; row `origin` goes first.
inline void pack_rows(const Rows<const float>& source, int64_t batch, int64_t head, Range range,
                      Range filled, int64_t channels, int64_t padded, int64_t origin, float* to) {
  for (int64_t row = filled.begin; row < filled.end; ++row) {
    float* const packed = to + (row - origin) * padded;
    if (row >= range.begin && row < range.end) {
      copy_padded(packed, source.row(batch, head, row), channels, padded);
    } else {
      std::memset(packed, 0, padded * sizeof(float));
    }
  }
}

/// The same transposed: whole panels [channels, kPanelKeys], key `row` in column row % kPanelKeys.
inline void pack_panels(const Rows<const float>& source, int64_t batch, int64_t head, Range range,
                        Range filled, int64_t channels, int64_t origin, float* to) {
  for (int64_t first = filled.begin; first < filled.end; first += kPanelKeys) {
    float* const panel = to + (first - origin) * channels;
    for (int column = 0; column < kPanelKeys; ++column) {
      const int64_t row = first + column;
      if (row >= range.begin && row < range.end) {
        const float* HWY_RESTRICT from = source.row(batch, head, row);
        for (int64_t c = 0; c < channels; ++c) panel[c * kPanelKeys + column] = from[c];
      } else {
        for (int64_t c = 0; c < channels; ++c) panel[c * kPanelKeys + column] = 0.0f;
      }
    }
  }
}

/// Packs keys of every axis of one head: `inner` of the inner axis and `leading` of the others
/// (bounds multiples of kPanelKeys). Only keys that an active query may see are read.
inline void pack_head(const DenseProblem<float>& problem, const Geometry& geometry,
                      const PackLayout& layout, int64_t batch, int64_t head, Range inner,
                      Range leading, float* base) {
  const Range active = problem.active_queries(batch);
  for (int p = 0; p < geometry.order; ++p) {
    const bool is_inner = p == geometry.inner();
    const DenseAxis<float>& axis = problem.axes[geometry.axis[p]];
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

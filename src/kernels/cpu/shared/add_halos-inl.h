// Sum of the segments' private gradients, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_ADD_HALOS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_ADD_HALOS_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_ADD_HALOS_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_ADD_HALOS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/shared/convert-inl.h"
#include "kernels/cpu/shared/pack-inl.h"
#include "kernels/cpu/shared/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Offset and range of one gradient in one segment's halo.
struct HaloPart {
  int64_t offset;
  Range range;
};

/// to[row] = scale * sum over segments, in their order, of the private rows. kTurned: these are
/// columns of panels.
template <bool kTurned, class T, class R>
void add_halo_rows(const Rows<T>& to, int64_t batch, int64_t head, Range rows,
                   const Channels& channels, const HaloPart* parts, int64_t count,
                   const R* gradients, R scale, R* sum) {
  const int64_t padded = channels.padded;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    std::fill(sum, sum + padded, R{0});
    for (int64_t s = 0; s < count; ++s) {
      if (row < parts[s].range.begin || row >= parts[s].range.end) continue;
      const R* const own = gradients + parts[s].offset;
      const int64_t at = row - parts[s].range.begin;
      if constexpr (kTurned) {
        // The rows after the last whole panel belong to no query.
        if (at >= parts[s].range.size() / kPanelKeys * kPanelKeys) continue;
        const R* const column = own + at / kPanelKeys * kPanelKeys * padded + at % kPanelKeys;
        for (int64_t c = 0; c < padded; ++c) sum[c] += column[c * kPanelKeys];
      } else {
        add_rows(sum, sum, own + at * padded, padded);
      }
    }
    store_channels(to.row(batch, head, row), scale, sum, channels);
  }
}

/// Writes rows `part` of every wanted gradient of keys and values of one head. `sum` has room for
/// one padded row. Private gradients of keys lack their scale (see HaloGradients). kTurnedInner: those
/// of the inner axis are transposed.
template <class E, bool kTurnedInner = kTiled<E>, class T>
void add_halos(const DenseBackward<T>& problem, const Geometry& geometry, const Segments& segments,
               int64_t batch, int64_t head, Range part, const Accum<T>* gradients, Accum<T>* sum) {
  using R = Accum<T>;
  HaloPart keys[kMaxSegments], values[kMaxSegments];
  for (int p = 0; p < geometry.order; ++p) {
    const int m = geometry.axis[p];
    HaloLayout layout(problem, geometry, segments, 0, 0);
    for (int64_t s = 0; s < segments.count; ++s) {
      if (s > 0) layout = HaloLayout(problem, geometry, segments, s, layout.end);
      keys[s] = {layout.keys[p], layout.range[p]};
      values[s] = {layout.values[p], layout.range[p]};
    }
    const Range rows{part.begin, std::min(part.end, problem.axes[m].visible.length)};
    const auto add = [&](const Rows<T>& to, const Channels& channels, const HaloPart* parts,
                         R scale) {
      const auto add_turned = [&]<bool kTurned>() {
        add_halo_rows<kTurned>(to, batch, head, rows, channels, parts, segments.count, gradients,
                               scale, sum);
      };
      if constexpr (kTurnedInner) {
        if (p == geometry.inner()) return add_turned.template operator()<true>();
      }
      add_turned.template operator()<false>();
    };
    if (problem.grad_key[m].data) {
      add(problem.grad_key[m], geometry.key(p), keys,
          static_cast<R>(key_gradient_scale<E>(geometry)));
    }
    if (problem.grad_value[m].data) add(problem.grad_value[m], geometry.value, values, R{1});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

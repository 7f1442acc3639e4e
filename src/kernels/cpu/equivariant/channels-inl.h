// Rows of float or double channels as vectors of double, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_CHANNELS_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_CHANNELS_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_CHANNELS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/equivariant/equivariant_layout.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const double* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  const hn::Rebind<float, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, from));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, double* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void store(D /*d*/, hn::Vec<D> value, float* to) {
  const hn::Rebind<float, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, value), narrow, to);
}

/// visit(row) for the rows of a task, of row_tasks(rows).
template <class Visit>
HWY_INLINE void for_task_rows(int64_t rows, int64_t task, Visit&& visit) {
  const int64_t end = std::min((task + 1) * kTaskRows, rows);
  for (int64_t row = task * kTaskRows; row < end; ++row) visit(row);
}

/// A sum of kVectors vectors of channels.
template <class D, int kVectors>
struct Sum {
  D d;
  hn::Vec<D> parts[kVectors];

  HWY_INLINE void clear() {
    for (int v = 0; v < kVectors; ++v) parts[v] = hn::Zero(d);
  }
  template <class From>
  HWY_INLINE void add(const From* row) {
    for (int v = 0; v < kVectors; ++v) {
      parts[v] = hn::Add(parts[v], load(d, row + v * hn::Lanes(d)));
    }
  }
  template <class From>
  HWY_INLINE void add_scaled(double factor, const From* row) {
    const auto wide = hn::Set(d, factor);
    for (int v = 0; v < kVectors; ++v) {
      parts[v] = hn::MulAdd(wide, load(d, row + v * hn::Lanes(d)), parts[v]);
    }
  }
  template <class To>
  HWY_INLINE void write(double factor, To* row) const {
    const auto wide = hn::Set(d, factor);
    for (int v = 0; v < kVectors; ++v) {
      store(d, hn::Mul(parts[v], wide), row + v * hn::Lanes(d));
    }
  }
};

/// body(sum, first channel) until all channels are covered: four vectors at a time, then one, then
/// single channels.
template <class Body>
HWY_INLINE void for_channels(int64_t channels, Body&& body) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) body(Sum<decltype(d), 4>{}, c);
  for (; c + lanes <= channels; c += lanes) body(Sum<decltype(d), 1>{}, c);
  for (; c < channels; ++c) body(Sum<decltype(one), 1>{}, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // NSIMPLEX_KERNELS_EQUIVARIANT_CHANNELS_INL_H_

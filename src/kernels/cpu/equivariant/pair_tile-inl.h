// The two products that attention by pairs is made of, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/cpu/equivariant/layout.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of one side, packed channel by channel: x[c * kPairChunk + column]. Columns beyond `count`
/// are zero up to the next whole vector.
template <class T>
struct Panel {
  T* x = nullptr;
  int64_t channels = 0;

  const T* channel(int64_t c) const { return x + c * kPairChunk; }
};

template <class T>
HWY_INLINE int64_t whole_vectors(int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return (count + lanes - 1) / lanes * lanes;
}

/// to[r][column] = sum over channels of rows[r][c] x[c][column], kRows rows `stride` apart.
template <int kRows, class T>
HWY_INLINE void project_rows(const T* rows, int64_t stride, const Panel<T>& panel, int64_t columns,
                             T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < columns; j += lanes) {
    hn::Vec<decltype(d)> sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
    for (int64_t c = 0; c < panel.channels; ++c) {
      const auto x = hn::LoadU(d, panel.channel(c) + j);
      for (int r = 0; r < kRows; ++r) {
        sums[r] = hn::MulAdd(hn::Set(d, rows[r * stride + c]), x, sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, to + r * kPairChunk + j);
  }
}

/// to[r][c] += factor * sum over columns of weights[r][column] x[c][column].
template <int kRows, class T>
HWY_INLINE void reduce_rows(const T* weights, const Panel<T>& panel, int64_t columns, double factor,
                            double* const* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < panel.channels; ++c) {
    hn::Vec<decltype(d)> sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
    for (int64_t j = 0; j < columns; j += lanes) {
      const auto x = hn::LoadU(d, panel.channel(c) + j);
      for (int r = 0; r < kRows; ++r) {
        sums[r] = hn::MulAdd(hn::LoadU(d, weights + r * kPairChunk + j), x, sums[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      to[r][c] += factor * static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums[r])));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// The two products that attention by pairs is made of, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/equivariant/channels-inl.h"
#include "kernels/cpu/equivariant/layout.h"
#include "kernels/cpu/equivariant/tuple_attention.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE int64_t whole_vectors(int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return (count + lanes - 1) / lanes * lanes;
}

// A panel holds rows of one side, a column each, as the other side's rows meet them. Both kinds
// have the same functions:
//
//   pack      takes the channels of rows of a head,
//   set_ones  makes a channel 1,
//   project   to[r][column] = sum over channels of rows[r][c] x[c][column], kRows rows `stride`
//             apart, zero behind the last channel up to pair_padded(channels),
//   reduce    to[r][c] += factor * sum over columns of weights[r][column] x[c][column], for the
//             first `width` channels.

/// Channel by channel, x[c * kPairChunk + column], so that a vector is of columns: what they cost
/// is shared by all rows that meet them. Columns beyond the last are zero up to a whole vector.
template <class T>
struct WidePanel {
  T* x = nullptr;
  int64_t channels = 0;

  WidePanel of_head(int64_t head) const {
    return {x + head * pair_padded(channels) * kPairChunk, channels};
  }
  T* channel(int64_t c) const { return x + c * kPairChunk; }

  HWY_INLINE void pack(const HeadRows<T>& from, const int32_t* rows, int64_t columns,
                       int64_t head) const {
    const int64_t padded = whole_vectors<T>(columns);
    for (int64_t j = 0; j < columns; ++j) {
      const T* const row = from.row(rows[j], head);
      for (int64_t c = 0; c < from.width; ++c) channel(c)[j] = row[c];
    }
    for (int64_t c = 0; c < from.width; ++c) {
      std::fill(channel(c) + columns, channel(c) + padded, T{0});
    }
  }

  HWY_INLINE void set_ones(int64_t c, int64_t columns) const {
    std::fill(channel(c), channel(c) + columns, T{1});
    std::fill(channel(c) + columns, channel(c) + whole_vectors<T>(columns), T{0});
  }

  template <int kRows>
  HWY_INLINE void project(const T* rows, int64_t stride, int64_t columns, T* to) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < columns; j += lanes) {
      hn::Vec<decltype(d)> sums[kRows];
      for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
      for (int64_t c = 0; c < channels; ++c) {
        const auto own = hn::LoadU(d, channel(c) + j);
        for (int r = 0; r < kRows; ++r) {
          sums[r] = hn::MulAdd(hn::Set(d, rows[r * stride + c]), own, sums[r]);
        }
      }
      for (int r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, to + r * kPairChunk + j);
    }
  }

  template <int kRows>
  HWY_INLINE void reduce(const T* weights, int64_t width, int64_t columns, double factor,
                         double* const* to) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t c = 0; c < width; ++c) {
      hn::Vec<decltype(d)> sums[kRows];
      for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
      for (int64_t j = 0; j < columns; j += lanes) {
        const auto own = hn::LoadU(d, channel(c) + j);
        for (int r = 0; r < kRows; ++r) {
          sums[r] = hn::MulAdd(hn::LoadU(d, weights + r * kPairChunk + j), own, sums[r]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        to[r][c] += factor * static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums[r])));
      }
    }
  }
};

/// Row by row, x[column * pair_padded(channels) + c], so that a vector is of channels: nothing is
/// turned, and no lanes are empty where columns are few.
template <class T>
struct NarrowPanel {
  T* x = nullptr;
  int64_t channels = 0;

  int64_t stride() const { return pair_padded(channels); }
  NarrowPanel of_head(int64_t head) const { return {x + head * stride() * kPairChunk, channels}; }

  HWY_INLINE void pack(const HeadRows<T>& from, const int32_t* rows, int64_t columns,
                       int64_t head) const {
    for (int64_t j = 0; j < columns; ++j) {
      T* const to = x + j * stride();
      const T* const row = from.row(rows[j], head);
      for (int64_t c = 0; c < from.width; ++c) to[c] = row[c];
      for (int64_t c = from.width; c < stride(); ++c) to[c] = 0;
    }
  }

  HWY_INLINE void set_ones(int64_t c, int64_t columns) const {
    for (int64_t j = 0; j < columns; ++j) x[j * stride() + c] = 1;
  }

  template <int kRows>
  HWY_INLINE void project(const T* rows, int64_t row_stride, int64_t columns, T* to) const {
    const hn::CappedTag<T, kPairStep> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < columns; ++j) {
      hn::Vec<decltype(d)> sums[kRows];
      for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
      for (int64_t c = 0; c < channels; c += lanes) {
        const auto own = hn::LoadU(d, x + j * stride() + c);
        for (int r = 0; r < kRows; ++r) {
          sums[r] = hn::MulAdd(hn::LoadU(d, rows + r * row_stride + c), own, sums[r]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        to[r * kPairChunk + j] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
      }
    }
  }

  template <int kRows>
  HWY_INLINE void reduce(const T* weights, int64_t width, int64_t columns, double factor,
                         double* const* to) const {
    for (int r = 0; r < kRows; ++r) {
      const T* const own = weights + r * kPairChunk;
      double* const place = to[r];
      for_channels(width, [&](auto sum, int64_t c) HWY_ATTR {
        sum.clear();
        sum.add(place + c);
        for (int64_t j = 0; j < columns; ++j) {
          sum.add_scaled(factor * static_cast<double>(own[j]), x + j * stride() + c);
        }
        sum.write(1, place + c);
      });
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

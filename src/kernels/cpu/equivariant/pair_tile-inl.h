// The two products of attention by pairs, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_PAIR_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/equivariant/equivariant_layout.h"
#include "kernels/cpu/equivariant/small_product-inl.h"
#include "kernels/cpu/equivariant/tuple_attention.h"
#include "kernels/cpu/shared/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE int64_t whole_vectors(int64_t count) {
  return round_up(count, static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())));
}

/// For rows that are too short for a call of memmove.
template <class T>
HWY_INLINE void copy_row(const T* from, int64_t count, T* to) {
  const hn::CappedTag<T, kPairStep> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= count; c += lanes) hn::StoreU(hn::LoadU(d, from + c), d, to + c);
  for (; c < count; ++c) to[c] = from[c];
}

/// Up to kPairChunk rows of one side, one per column, for the rows of the other side. They are
/// stored channel by channel, so that a vector holds columns and all rows that meet them share the
/// cost; or row by row, so that a vector holds channels; or both. Products over channels use the
/// former unless there are few columns; sums over columns use the latter unless there are many.
template <class T>
class PairPanel {
 public:
  /// For one head.
  PairPanel(T* memory, int64_t channels, int64_t columns, int64_t head)
      : channels_(channels),
        columns_(columns),
        row_(pair_padded(channels)),
        column_(whole_vectors<T>(columns)),
        rows_(memory + head * 2 * row_ * column_),
        turned_(rows_ + row_ * column_) {}

  /// Packs the channels of rows, for project() and for reduce().
  HWY_INLINE void pack(const HeadRows<T>& from, const int32_t* rows, int64_t head, bool projected,
                       bool reduced) const {
    if (!few() && (projected || many())) turn(from, rows, head);
    if (few() || (reduced && !many())) {
      for (int64_t j = 0; j < columns_; ++j) {
        T* const to = rows_ + j * row_;
        copy_row(from.row(rows[j], head), from.width, to);
        for (int64_t c = from.width; c < row_; ++c) to[c] = 0;
      }
    }
  }

  /// Makes a channel 1.
  HWY_INLINE void set_ones(int64_t c) const {
    for (int64_t j = 0; j < columns_; ++j) rows_[j * row_ + c] = 1;
    std::fill_n(turned_ + c * column_, columns_, T{1});
    std::fill(turned_ + c * column_ + columns_, turned_ + (c + 1) * column_, T{0});
  }

  /// to[r][column] = sum over channels of rows[r][c] x[c][column], kRows rows pair_padded(channels)
  /// apart, zero behind the last channel.
  template <int kRows>
  HWY_INLINE void project(const T* rows, T* to) const {
    few() ? project_rows<kRows>(rows, to) : project_turned<kRows>(rows, to);
  }

  /// to[r][c] += factor * sum over columns of weights[r][column] x[c][column], for the first
  /// `count` rows and `width` channels.
  template <int kRows>
  HWY_INLINE void reduce(const T* weights, int64_t width, int count, double factor,
                         double* const* to) const {
    if (many()) return reduce_turned<kRows>(weights, width, count, factor, to);
    int64_t c = 0;
    for (; c + kPairStep < width; c += 2 * kPairStep) {
      reduce_rows<kRows, 2 * kPairStep>(weights, c, width, count, factor, to);
    }
    if (c < width) reduce_rows<kRows, kPairStep>(weights, c, width, count, factor, to);
  }

 private:
  bool few() const { return columns_ <= kFewColumns; }
  bool many() const { return columns_ > kSummedColumns; }

  HWY_INLINE void turn(const HeadRows<T>& from, const int32_t* rows, int64_t head) const {
    int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (std::is_same_v<T, float>) {
      for (; j + 4 <= columns_; j += 4) turn_four(from, rows + j, head, j);
    }
#endif
    for (; j < columns_; ++j) {
      const T* const row = from.row(rows[j], head);
      for (int64_t c = 0; c < from.width; ++c) turned_[c * column_ + j] = row[c];
    }
    for (int64_t c = 0; c < from.width; ++c) {
      std::fill(turned_ + c * column_ + columns_, turned_ + (c + 1) * column_, T{0});
    }
  }

#if HWY_TARGET != HWY_SCALAR
  HWY_INLINE void turn_four(const HeadRows<T>& from, const int32_t* rows, int64_t head,
                            int64_t j) const {
    const hn::FixedTag<float, 4> d;
    const T* in[4];
    for (int i = 0; i < 4; ++i) in[i] = from.row(rows[i], head);
    T* out = turned_ + j;
    int64_t c = 0;
    for (; c + 4 <= from.width; c += 4, out += 4 * column_) {
      kernels::HWY_NAMESPACE::store_turned(
          hn::LoadU(d, in[0] + c), hn::LoadU(d, in[1] + c), hn::LoadU(d, in[2] + c),
          hn::LoadU(d, in[3] + c), {out, out + column_, out + 2 * column_, out + 3 * column_});
    }
    for (; c < from.width; ++c, out += column_) {
      for (int i = 0; i < 4; ++i) out[i] = in[i][c];
    }
  }
#endif

  // Two vectors at a time: products of one vector of four rows wait for each other.
  template <int kRows>
  HWY_INLINE void project_turned(const T* rows, T* to) const {
    const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    int64_t j = 0;
    for (; j + lanes < columns_; j += 2 * lanes) project_vectors<kRows, 2>(rows, j, to);
    if (j < columns_) project_vectors<kRows, 1>(rows, j, to);
  }

  template <int kRows, int kVectors>
  HWY_INLINE void project_vectors(const T* rows, int64_t j, T* to) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    for (int64_t c = 0; c < channels_; ++c) {
      hn::Vec<decltype(d)> own[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        own[v] = hn::LoadU(d, turned_ + c * column_ + j + v * lanes);
      }
      for (int r = 0; r < kRows; ++r) {
        const auto row = hn::Set(d, rows[r * row_ + c]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(row, own[v], sums[r][v]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(sums[r][v], d, to + r * kPairChunk + j + v * lanes);
      }
    }
  }

  template <int kRows>
  HWY_INLINE void project_rows(const T* rows, T* to) const {
    const hn::CappedTag<T, kPairStep> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < columns_; ++j) {
      hn::Vec<decltype(d)> sums[kRows];
      for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
      for (int64_t c = 0; c < row_; c += lanes) {
        const auto own = hn::LoadU(d, rows_ + j * row_ + c);
        for (int r = 0; r < kRows; ++r) {
          sums[r] = hn::MulAdd(hn::LoadU(d, rows + r * row_ + c), own, sums[r]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        to[r * kPairChunk + j] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
      }
    }
  }

  // kChannels channels from c on.
  template <int kRows, int kChannels>
  HWY_INLINE void reduce_rows(const T* weights, int64_t c, int64_t width, int count, double factor,
                              double* const* to) const {
    const hn::CappedTag<T, kChannels> d;
    constexpr int64_t kLanes = hn::MaxLanes(d), kVectors = kChannels / kLanes;
    hn::Vec<decltype(d)> sums[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    for (int64_t j = 0; j < columns_; ++j) {
      hn::Vec<decltype(d)> own[kVectors];
      for (int v = 0; v < kVectors; ++v) own[v] = hn::LoadU(d, rows_ + j * row_ + c + v * kLanes);
      for (int r = 0; r < kRows; ++r) {
        const auto weight = hn::Set(d, weights[r * kPairChunk + j]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(weight, own[v], sums[r][v]);
      }
    }
    HWY_ALIGN T all[kChannels];
    for (int r = 0; r < count; ++r) {
      for (int v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, all + v * kLanes);
      add_scaled(factor, all, std::min<int64_t>(width - c, kChannels), to[r] + c);
    }
  }

  // Two channels at a time, for the same reason; they share the weights.
  template <int kRows>
  HWY_INLINE void reduce_turned(const T* weights, int64_t width, int count, double factor,
                                double* const* to) const {
    int64_t c = 0;
    for (; c + 1 < width; c += 2) reduce_channels<kRows, 2>(weights, c, count, factor, to);
    if (c < width) reduce_channels<kRows, 1>(weights, c, count, factor, to);
  }

  template <int kRows, int kChannels>
  HWY_INLINE void reduce_channels(const T* weights, int64_t c, int count, double factor,
                                  double* const* to) const {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[kRows][kChannels];
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kChannels; ++i) sums[r][i] = hn::Zero(d);
    }
    for (int64_t j = 0; j < columns_; j += lanes) {
      hn::Vec<decltype(d)> own[kChannels];
      for (int i = 0; i < kChannels; ++i) own[i] = hn::LoadU(d, turned_ + (c + i) * column_ + j);
      for (int r = 0; r < kRows; ++r) {
        const auto weight = hn::LoadU(d, weights + r * kPairChunk + j);
        for (int i = 0; i < kChannels; ++i) sums[r][i] = hn::MulAdd(weight, own[i], sums[r][i]);
      }
    }
    for (int r = 0; r < count; ++r) {
      for (int i = 0; i < kChannels; ++i) {
        to[r][c + i] += factor * static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums[r][i])));
      }
    }
  }

  int64_t channels_, columns_;
  int64_t row_, column_;  // from a row, and from a channel, to the next
  T *rows_, *turned_;
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

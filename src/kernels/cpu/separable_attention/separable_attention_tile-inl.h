// Register tiles of the separable kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_TILE_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_TILE_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_TILE_INL_H_
#endif

#include "kernels/cpu/separable_attention/separable_attention_layout.h"
#include "kernels/cpu/shared/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using dense::HWY_NAMESPACE::kLanes, dense::HWY_NAMESPACE::Tag, dense::HWY_NAMESPACE::Vec;
static_assert(kTileElements % (8 * kLanes<float>) == 0 && kChannels % kLanes<float> == 0);

/// kRows features by kVectors vectors of channels, in registers: at most 8 vectors, so that they
/// and their operands fit 16 registers.
template <class T, int kRows, int kVectors>
struct Tile {
  Vec<T> at[kRows][kVectors];

  HWY_INLINE void zero() {
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) at[r][v] = hn::Zero(Tag<T>());
    }
  }

  /// Rows `stride` apart.
  HWY_INLINE void load(const T* HWY_RESTRICT from, int64_t stride) {
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        at[r][v] = hn::Load(Tag<T>(), from + r * stride + v * kLanes<T>);
      }
    }
  }
  HWY_INLINE void store(T* HWY_RESTRICT to, int64_t stride) const {
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        hn::Store(at[r][v], Tag<T>(), to + r * stride + v * kLanes<T>);
      }
    }
  }

  // Contiguous tiles in memory: kRows * kVectors vectors in a row.
  static constexpr int64_t kStride = int64_t{kVectors} * kLanes<T>;

  HWY_INLINE void add(const T* HWY_RESTRICT tile) {
    Tile other;
    other.load(tile, kStride);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) at[r][v] = hn::Add(at[r][v], other.at[r][v]);
    }
  }
  HWY_INLINE void multiply(const T* HWY_RESTRICT tile) {
    Tile other;
    other.load(tile, kStride);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) at[r][v] = hn::Mul(at[r][v], other.at[r][v]);
    }
  }

  /// += column row^T: features column[kRows], channels row[kVectors vectors].
  HWY_INLINE void add_outer(const T* HWY_RESTRICT column, const T* HWY_RESTRICT row) {
    const Tag<T> d;
    Vec<T> channels[kVectors];
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) channels[v] = hn::Load(d, row + v * kLanes<T>);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> feature = hn::Set(d, column[r]);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) at[r][v] = hn::MulAdd(feature, channels[v], at[r][v]);
    }
  }

  /// row += column^T tile.
  HWY_INLINE void add_to_row(const T* HWY_RESTRICT column, T* HWY_RESTRICT row) const {
    const Tag<T> d;
    Vec<T> sum[kVectors];
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Load(d, row + v * kLanes<T>);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> feature = hn::Set(d, column[r]);
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(feature, at[r][v], sum[v]);
    }
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], d, row + v * kLanes<T>);
  }

  /// column += tile row.
  HWY_INLINE void add_to_column(const T* HWY_RESTRICT row, T* HWY_RESTRICT column) const {
    const Tag<T> d;
    Vec<T> channels[kVectors];
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) channels[v] = hn::Load(d, row + v * kLanes<T>);
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Vec<T> sum = hn::Mul(at[r][0], channels[0]);
      NSIMPLEX_UNROLL
      for (int v = 1; v < kVectors; ++v) sum = hn::MulAdd(at[r][v], channels[v], sum);
      column[r] += hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
};

/// Calls pass.tile<kRows, kVectors>(row, channel) for tiles that cover rows x width: wide tiles,
/// and tall narrow ones for the remaining channels, so that enough multiply-adds are in flight.
template <class T, class Pass>
HWY_INLINE void for_each_tile(int64_t rows, int64_t width, Pass&& pass) {
  int64_t c = 0;
  for (; c + 4 * kLanes<T> <= width; c += 4 * kLanes<T>) {
    for (int64_t r = 0; r < rows; r += 2) pass.template tile<2, 4>(r, c);
  }
  for (; c + 2 * kLanes<T> <= width; c += 2 * kLanes<T>) {
    for (int64_t r = 0; r < rows; r += 4) pass.template tile<4, 2>(r, c);
  }
  for (; c < width; c += kLanes<T>) {
    for (int64_t r = 0; r < rows; r += 8) pass.template tile<8, 1>(r, c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

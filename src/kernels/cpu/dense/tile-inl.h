// Register tiles of the dense kernel and the exponential, for one SIMD target. Included once per
// target by foreach_target.h, hence the toggled guard.
#if defined(NSIMPLEX_KERNELS_DENSE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_TILE_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_TILE_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/common/tile_table.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
static_assert(kLineFloats % kLanes == 0 && kPanelKeys % kLanes == 0);

// AVX-512 and NEON have 32 vector registers, SSE and AVX2 have 16.
inline constexpr TileShape kTile =
    tile_shape(HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 32 : 16);

// Without the pragma GCC keeps arrays of accumulators in memory (0.37 instead of 0.92 of sgemm); on
// the loop over the depth it gains GCC 1 to 3 %. Both compilers read the pragma by this name.
#ifndef NSIMPLEX_UNROLL
#define NSIMPLEX_UNROLL _Pragma("GCC unroll 16")
#define NSIMPLEX_UNROLL_DEPTH _Pragma("GCC unroll 4")
#endif

/// Accumulators of kRows x kVectors vectors.
template <int kRows, int kVectors>
struct Tile {
  Vec at[kRows][kVectors];

  /// at[r][v] += sum_k a[r, k] * b[k, v], the depth k in order. `a` is read element by element,
  /// rows of `b` are aligned vectors.
  HWY_INLINE void multiply_add(const float* HWY_RESTRICT a, int64_t a_row, int64_t a_depth,
                               const float* HWY_RESTRICT b, int64_t b_row, int64_t depth) {
    const Tag d;
    NSIMPLEX_UNROLL_DEPTH
    for (int64_t k = 0; k < depth; ++k) {
      Vec row[kVectors];
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) row[v] = hn::Load(d, b + k * b_row + v * kLanes);
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Vec scalar = hn::Set(d, a[r * a_row + k * a_depth]);
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) at[r][v] = hn::MulAdd(scalar, row[v], at[r][v]);
      }
    }
  }
};

/// c[r, :] += sum_k a[r, k] b[k, :] for one tile.
template <int kRows, int kVectors>
HWY_INLINE void add_tile(float* HWY_RESTRICT c, int64_t c_row, const float* HWY_RESTRICT a,
                         int64_t a_row, int64_t a_depth, const float* HWY_RESTRICT b, int64_t b_row,
                         int64_t depth) {
  const Tag d;
  Tile<kRows, kVectors> tile;
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) tile.at[r][v] = hn::Load(d, c + r * c_row + v * kLanes);
  }
  tile.multiply_add(a, a_row, a_depth, b, b_row, depth);
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) hn::Store(tile.at[r][v], d, c + r * c_row + v * kLanes);
  }
}

/// c[r, :width] += sum_k a[r, k] b[k, :width]: rows a multiple of 8, width of kLineFloats, c and b
/// aligned. Narrow remainders take taller tiles, so that enough multiply-adds are in flight.
HWY_INLINE void add_product(float* c, int64_t c_row, int rows, const float* a, int64_t a_row,
                            int64_t a_depth, const float* b, int64_t b_row, int64_t depth,
                            int64_t width) {
  constexpr int kWide = kTile.sum_vectors, kTall = 2 * kTile.sum_rows;
  int64_t left = width;
  for (; left >= kWide * kLanes; left -= kWide * kLanes, b += kWide * kLanes, c += kWide * kLanes) {
    for (int r = 0; r < rows; r += kTile.sum_rows) {
      add_tile<kTile.sum_rows, kWide>(c + r * c_row, c_row, a + r * a_row, a_row, a_depth, b, b_row,
                                      depth);
    }
  }
  constexpr int kHalf = kWide / 2;
  for (; left >= kHalf * kLanes; left -= kHalf * kLanes, b += kHalf * kLanes, c += kHalf * kLanes) {
    for (int r = 0; r < rows; r += kTall) {
      add_tile<kTall, kHalf>(c + r * c_row, c_row, a + r * a_row, a_row, a_depth, b, b_row, depth);
    }
  }
  for (; left > 0; left -= kLanes, b += kLanes, c += kLanes) {
    for (int r = 0; r < rows; r += kTall) {
      add_tile<kTall, 1>(c + r * c_row, c_row, a + r * a_row, a_row, a_depth, b, b_row, depth);
    }
  }
}

/// 2^x for x <= 127, relative error below 2e-7; 0 below -126; NaN stays NaN whatever its payload.
HWY_INLINE Vec exp2(Vec x) {
  const Tag d;
  const hn::RebindToSigned<Tag> di;
  // Adding 1.5 * 2^23 leaves round(x) in the low bits; the exponent's bias comes along.
  const Vec magic = hn::Set(d, 12582912.0f + 127.0f);
  const Vec shifted = hn::Add(x, magic);
  const Vec power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));  // 2^round(x)
  const Vec f = hn::Sub(x, hn::Sub(shifted, magic));
  // 1 + f (c1 + f (c2 + ..)): minimax polynomial of 2^f on [-1/2, 1/2] (9.2e-8), found by
  // reweighted least squares. A product with `power`, and not a sum in the exponent field, keeps
  // NaN a NaN.
  Vec p = hn::MulAdd(hn::Set(d, 1.32647e-3f), f, hn::Set(d, 9.67151e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550734e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022242e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314698e-1f));
  const Vec result = hn::MulAdd(hn::Mul(p, f), power, power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), result);
}

/// Lanes `column + [0, kLanes)` that lie in [begin, end).
HWY_INLINE hn::Mask<Tag> within(int column, int begin, int end) {
  const Tag d;
  const hn::RebindToSigned<Tag> di;
  const auto lane = hn::Iota(di, column);
  return hn::RebindMask(
      d, hn::And(hn::Gt(lane, hn::Set(di, begin - 1)), hn::Lt(lane, hn::Set(di, end))));
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

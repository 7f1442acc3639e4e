// Register tiles of the dense kernel, for one SIMD target. Included once per
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
#include "kernels/cpu/shared/operand-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// R is the computing type, float or double; E is the content of operand slots.
template <class R>
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<R>()));
static_assert(kLineChannels % kLanes<float> == 0 && kPanelKeys % kLanes<float> == 0);

// AVX-512 and NEON have 32 vector registers, SSE and AVX2 have 16.
inline constexpr TileShape kTile =
    tile_shape(HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 32 : 16);

// Without the pragma GCC keeps arrays of accumulators in memory (0.37 instead of 0.92 of sgemm). On
// the loop over the depth it gains 1 to 3 % with GCC. Both compilers accept the pragma under this
// name.
#ifndef NSIMPLEX_UNROLL
#define NSIMPLEX_UNROLL _Pragma("GCC unroll 16")
#define NSIMPLEX_UNROLL_DEPTH _Pragma("GCC unroll 4")
#endif

/// Accumulators of kRows x kVectors vectors.
template <class R, int kRows, int kVectors>
struct Tile {
  Vec<R> at[kRows][kVectors];

  HWY_INLINE void zero() {
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) at[r][v] = hn::Zero(Tag<R>());
    }
  }

  HWY_INLINE void load(const R* from, int64_t from_row) {
    NSIMPLEX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        at[r][v] = hn::Load(Tag<R>(), from + r * from_row + v * kLanes<R>);
      }
    }
  }

  /// at[r][v] += sum_k a[r, k] * b[k, v], the depth k in order. `a` is read element by element,
  /// rows of `b` are aligned vectors.
  template <class E>
  HWY_INLINE void multiply_add(const R* HWY_RESTRICT a, int64_t a_row, int64_t a_depth,
                               const R* HWY_RESTRICT b, int64_t b_row, int64_t depth) {
    const Tag<R> d;
    NSIMPLEX_UNROLL_DEPTH
    for (int64_t k = 0; k < depth; ++k) {
      Vec<R> row[kVectors];
      NSIMPLEX_UNROLL
      for (int v = 0; v < kVectors; ++v) row[v] = hn::Load(d, b + k * b_row + v * kLanes<R>);
      NSIMPLEX_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Vec<R> scalar = hn::Set(d, a[r * a_row + k * a_depth]);
        NSIMPLEX_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          at[r][v] = multiply_add_slots<E>(scalar, row[v], at[r][v]);
        }
      }
    }
  }
};

/// c[r, :] += sum_k a[r, k] b[k, :] for one tile.
template <class E, class R, int kRows, int kVectors>
HWY_INLINE void add_tile(R* HWY_RESTRICT c, int64_t c_row, const R* HWY_RESTRICT a, int64_t a_row,
                         int64_t a_depth, const R* HWY_RESTRICT b, int64_t b_row, int64_t depth) {
  const Tag<R> d;
  Tile<R, kRows, kVectors> tile;
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) tile.at[r][v] = hn::Load(d, c + r * c_row + v * kLanes<R>);
  }
  tile.template multiply_add<E>(a, a_row, a_depth, b, b_row, depth);
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) hn::Store(tile.at[r][v], d, c + r * c_row + v * kLanes<R>);
  }
}

/// c[r, :width] += sum_k a[r, k] b[k, :width]: rows are a multiple of 8, width of kLineChannels, c
/// and b aligned. Narrow remainders use taller tiles, so that enough multiply-adds are in flight.
template <class E, class R>
HWY_INLINE void add_product(R* c, int64_t c_row, int rows, const R* a, int64_t a_row,
                            int64_t a_depth, const R* b, int64_t b_row, int64_t depth,
                            int64_t width) {
  constexpr int kWide = kTile.sum_vectors, kTall = 2 * kTile.sum_rows;
  int64_t left = width;
  for (; left >= kWide * kLanes<R>;
       left -= kWide * kLanes<R>, b += kWide * kLanes<R>, c += kWide * kLanes<R>) {
    for (int r = 0; r < rows; r += kTile.sum_rows) {
      add_tile<E, R, kTile.sum_rows, kWide>(c + r * c_row, c_row, a + r * a_row, a_row, a_depth, b,
                                            b_row, depth);
    }
  }
  constexpr int kHalf = kWide / 2;
  for (; left >= kHalf * kLanes<R>;
       left -= kHalf * kLanes<R>, b += kHalf * kLanes<R>, c += kHalf * kLanes<R>) {
    for (int r = 0; r < rows; r += kTall) {
      add_tile<E, R, kTall, kHalf>(c + r * c_row, c_row, a + r * a_row, a_row, a_depth, b, b_row,
                                   depth);
    }
  }
  for (; left > 0; left -= kLanes<R>, b += kLanes<R>, c += kLanes<R>) {
    for (int r = 0; r < rows; r += kTall) {
      add_tile<E, R, kTall, 1>(c + r * c_row, c_row, a + r * a_row, a_row, a_depth, b, b_row,
                               depth);
    }
  }
}

/// Calls tile.operator()<kRows, kVectors>(row, vector) for the score tiles of a strip's vectors
/// [vector, end): the widest tiles first, and all rows before the next vectors.
template <int kVectors, class Body>
HWY_INLINE void for_each_score_tile(int vector, int end, const Body& tile) {
  constexpr int kRows = kTile.rows_of_score(kVectors);
  static_assert(kStripRows % kRows == 0);
  for (; vector + kVectors <= end; vector += kVectors) {
    for (int r = 0; r < kStripRows; r += kRows) {
      tile.template operator()<kRows, kVectors>(r, vector);
    }
  }
  if constexpr (kVectors > 1) for_each_score_tile<kVectors - 1>(vector, end, tile);
}

/// The same with tiles of the shape `score`, or of the shape `wide`, which only x86 has apart.
template <class Body>
HWY_INLINE void for_each_score_tile(bool wide, int vector, int end, const Body& tile) {
  if constexpr (HWY_ARCH_X86 && kTile.wide_vectors > kTile.score_vectors) {
    if (wide) return for_each_score_tile<kTile.wide_vectors>(vector, end, tile);
  }
  for_each_score_tile<kTile.score_vectors>(vector, end, tile);
}

/// Lanes `column + [0, kLanes<R>)` that lie in [begin, end).
template <class R>
HWY_INLINE hn::Mask<Tag<R>> within(int column, int begin, int end) {
  const Tag<R> d;
  const hn::RebindToSigned<Tag<R>> di;
  const auto lane = hn::Iota(di, column);
  return hn::RebindMask(
      d, hn::And(hn::Gt(lane, hn::Set(di, begin - 1)), hn::Lt(lane, hn::Set(di, end))));
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

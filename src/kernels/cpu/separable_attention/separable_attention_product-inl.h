// Small matrix products of the separable kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_SEPARABLE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_SEPARABLE_PRODUCT_INL_H_
#undef NSIMPLEX_KERNELS_SEPARABLE_PRODUCT_INL_H_
#else
#define NSIMPLEX_KERNELS_SEPARABLE_PRODUCT_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/separable_attention/separable_attention_ahead-inl.h"
#include "kernels/cpu/separable_attention/separable_attention_layout.h"
#include "kernels/cpu/shared/tile-inl.h"
#include "kernels/cpu/shared/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::separable {
namespace HWY_NAMESPACE {
namespace tiles = dense::HWY_NAMESPACE;

/// a b. a is read number by number, (m, k) at a[m * a_row + k * a_depth]; rows of b are read by
/// aligned vectors.
template <class T>
struct Product {
  const T* a = nullptr;
  int64_t a_row = 0, a_depth = 0;
  const T* b = nullptr;
  int64_t b_row = 0;
  int64_t depth = 0;

  template <int kRows, int kVectors>
  HWY_INLINE void add_to(tiles::Tile<T, kRows, kVectors>& tile, int64_t row, int64_t column,
                         Range of_depth) const {
    if (of_depth.size() <= 0) return;  // a product that is left out has no operands to point into
    tile.template multiply_add<T>(a + row * a_row + of_depth.begin * a_depth, a_row, a_depth,
                                  b + of_depth.begin * b_row + column, b_row, of_depth.size());
  }
};

/// c = first + second, or += where `add`. Rows of c are aligned.
template <class T>
struct Sum {
  T* c = nullptr;
  int64_t c_row = 0;
  Product<T> first, second;
  bool add = false;
};

// Not inlined, so that every product uses the same few of these.
template <class T, int kRows, int kVectors>
HWY_NOINLINE void sum_tile(const Sum<T>& sum, int64_t row, int64_t column, Range first_depth) {
  const tiles::Tag<T> d;
  tiles::Tile<T, kRows, kVectors> tile;
  T* const c = sum.c + row * sum.c_row + column;
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const T* const from = c + r * sum.c_row + v * tiles::kLanes<T>;
      tile.at[r][v] = sum.add ? hn::Load(d, from) : hn::Zero(d);
    }
  }
  sum.first.add_to(tile, row, column, first_depth);
  sum.second.add_to(tile, row, column, {0, sum.second.depth});
  NSIMPLEX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NSIMPLEX_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(tile.at[r][v], d, c + r * sum.c_row + v * tiles::kLanes<T>);
    }
  }
}

/// Rows and vectors of a tile; remaining rows are processed one by one.
inline constexpr int kTileRows = tiles::kTile.score_rows, kTileVectors = 2;
static_assert(tiles::kTile.score_vectors == kTileVectors);

/// Columns are whole vectors, two at most; rows are kTileRows or one.
template <class T>
HWY_INLINE void sum_tile(const Sum<T>& sum, Range rows, Range columns, Range first_depth) {
  const bool one = columns.size() == tiles::kLanes<T>;
  const auto run = rows.size() == 1
                       ? (one ? sum_tile<T, 1, 1> : sum_tile<T, 1, kTileVectors>)
                       : (one ? sum_tile<T, kTileRows, 1> : sum_tile<T, kTileRows, kTileVectors>);
  run(sum, rows.begin, columns.begin, first_depth);
}

/// Calls tile(rows, columns) for tiles of rows x columns, a whole number of vectors. It finishes a
/// few columns before the next, so that b stays in the cache. Before each tile it fetches a little.
template <class T, class Body>
HWY_INLINE void for_each_product_tile(int64_t rows, int64_t columns, Ahead<T>* ahead,
                                      const Body& tile) {
  constexpr int64_t kWide = kTileVectors * tiles::kLanes<T>;
  for (int64_t n = 0; n < columns; n += kWide) {
    const Range wide{n, std::min(n + kWide, columns)};
    for (int64_t m = 0; m < rows;) {
      const int64_t end = m + (m + kTileRows <= rows ? kTileRows : 1);
      if (ahead) ahead->fetch();
      tile(Range{m, end}, wide);
      m = end;
    }
  }
}

/// The sum. Tiles of its first product use only depth(rows).
template <class T, class Depth>
void multiply(const Sum<T>& sum, int64_t rows, int64_t columns, Ahead<T>* ahead,
              const Depth& depth) {
  for_each_product_tile<T>(rows, columns, ahead,
                           [&](Range m, Range n) HWY_ATTR { sum_tile(sum, m, n, depth(m)); });
}
template <class T>
void multiply(const Sum<T>& sum, int64_t rows, int64_t columns, Ahead<T>* ahead) {
  multiply(sum, rows, columns, ahead, [&](Range) { return Range{0, sum.first.depth}; });
}

/// The sum in the columns seen(row) of each row, and zeros elsewhere. From one row to the next,
/// neither end of seen(row) decreases. Columns that no row of a tile sees are not computed.
template <class T, class Seen>
void multiply_seen(const Sum<T>& sum, int64_t rows, int64_t columns, Ahead<T>* ahead,
                   const Seen& seen) {
  constexpr int64_t lanes = tiles::kLanes<T>;
  for_each_product_tile<T>(rows, columns, ahead, [&](Range m, Range n) HWY_ATTR {
    const Range first = seen(m.begin), last = seen(m.end - 1);
    const Range any{std::max(n.begin, first.begin / lanes * lanes),
                    std::min(n.end, round_up(last.end, lanes))};
    if (any.begin < any.end) sum_tile(sum, m, any, {0, sum.first.depth});
    if (last.begin <= n.begin && n.end <= first.end) return;  // every row sees all of it
    const tiles::Tag<T> d;
    for (int64_t row = m.begin; row < m.end; ++row) {
      const Range own = seen(row);
      for (int64_t column = n.begin; column < n.end; column += lanes) {
        T* const at = sum.c + row * sum.c_row + column;
        const auto inside = tiles::within<T>(static_cast<int>(column), static_cast<int>(own.begin),
                                             static_cast<int>(own.end));
        hn::Store(hn::IfThenElseZero(inside, hn::Load(d, at)), d, at);
      }
    }
  });
}

/// to (columns x rows) = the transpose of from (rows x columns), multiples of four.
template <class T>
void transpose(const T* HWY_RESTRICT from, int64_t from_row, int64_t rows, int64_t columns,
               T* HWY_RESTRICT to, int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * to_row + r] = from[r * from_row + c];
  }
}

#if HWY_TARGET != HWY_SCALAR
template <>
inline void transpose(const float* HWY_RESTRICT from, int64_t from_row, int64_t rows,
                      int64_t columns, float* HWY_RESTRICT to, int64_t to_row) {
  const hn::FixedTag<float, 4> d;
  for (int64_t r = 0; r < rows; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      const float* const in = from + r * from_row + c;
      float* const out = to + c * to_row + r;
      kernels::HWY_NAMESPACE::store_turned(
          hn::Load(d, in), hn::Load(d, in + from_row), hn::Load(d, in + 2 * from_row),
          hn::Load(d, in + 3 * from_row), {out, out + to_row, out + 2 * to_row, out + 3 * to_row});
    }
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::separable
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// Products of small matrices of doubles, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_EQUIVARIANT_SMALL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_EQUIVARIANT_SMALL_PRODUCT_INL_H_
#undef NSIMPLEX_KERNELS_EQUIVARIANT_SMALL_PRODUCT_INL_H_
#else
#define NSIMPLEX_KERNELS_EQUIVARIANT_SMALL_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/equivariant/channels-inl.h"
#include "kernels/cpu/equivariant/equivariant_layout.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::equivariant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of right-hand sides and results are padded to kTableStep, a whole number of vectors.
using Wide = hn::CappedTag<double, kTableStep>;

/// A left-hand side: entry (i, k) is at[i * row + k * column].
struct LeftSide {
  const double* at;
  int64_t row, column;
};

/// Rows that are multiplied at a time. If results have room for more rows than needed, whole tiles
/// cost less than single rows, each of which waits for its own sums.
constexpr int kTileRows = 4;
HWY_INLINE int64_t whole_tiles(int64_t rows) { return round_up(rows, kTileRows); }

template <int kRows, int kVectors>
HWY_INLINE void multiply_tile(int64_t inner, const LeftSide& a, const double* b, int64_t b_row,
                              double* c, int64_t c_row, bool add) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Wide> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = add ? hn::LoadU(d, c + r * c_row + v * lanes) : hn::Zero(d);
    }
  }
  for (int64_t k = 0; k < inner; ++k) {
    hn::Vec<Wide> right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + k * b_row + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto left = hn::Set(d, a.at[r * a.row + k * a.column]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * c_row + v * lanes);
  }
}

template <int kVectors>
HWY_INLINE void multiply_columns(int64_t rows, int64_t inner, const LeftSide& a, const double* b,
                                 int64_t b_row, double* c, int64_t c_row, bool add) {
  int64_t i = 0;
  const auto below = [&](int64_t row) { return LeftSide{a.at + row * a.row, a.row, a.column}; };
  // Independent sums, as many as registers hold.
  constexpr int kMost = kTileRows * (hn::MaxLanes(Wide()) == kTableStep ? 2 : 1);
  for (; i + kMost <= rows; i += kMost) {
    multiply_tile<kMost, kVectors>(inner, below(i), b, b_row, c + i * c_row, c_row, add);
  }
  if constexpr (kMost > kTileRows) {
    if (i + kTileRows <= rows) {
      multiply_tile<kTileRows, kVectors>(inner, below(i), b, b_row, c + i * c_row, c_row, add);
      i += kTileRows;
    }
  }
  for (; i < rows; ++i) {
    multiply_tile<1, kVectors>(inner, below(i), b, b_row, c + i * c_row, c_row, add);
  }
}

/// c [rows, columns] = a [rows, inner] b [inner, columns], or += where `add`; columns is a multiple
/// of kTableStep.
HWY_INLINE void multiply(int64_t rows, int64_t columns, int64_t inner, const LeftSide& a,
                         const double* b, int64_t b_row, double* c, int64_t c_row, bool add) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Wide()));
  int64_t j = 0;
  for (; j + 2 * lanes <= columns; j += 2 * lanes) {
    multiply_columns<2>(rows, inner, a, b + j, b_row, c + j, c_row, add);
  }
  for (; j < columns; j += lanes) {
    multiply_columns<1>(rows, inner, a, b + j, b_row, c + j, c_row, add);
  }
}

/// to[columns] = the sum of `rows` rows, or += where `add`; columns is a multiple of kTableStep.
HWY_INLINE void sum_rows(int64_t rows, int64_t columns, const double* from, double* to, bool add) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < columns; c += lanes) {
    auto sum = add ? hn::LoadU(d, to + c) : hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) sum = hn::Add(sum, hn::LoadU(d, from + r * columns + c));
    hn::StoreU(sum, d, to + c);
  }
}

/// to = sign * from
template <class T>
HWY_INLINE void widen(const T* from, int64_t count, double* to, double sign = 1) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto signs = hn::Set(d, sign);
  int64_t c = 0;
  for (; c + lanes <= count; c += lanes) {
    hn::StoreU(hn::Mul(signs, load(d, from + c)), d, to + c);
  }
  for (; c < count; ++c) to[c] = sign * static_cast<double>(from[c]);
}

/// to += factor * from
template <class T>
HWY_INLINE void add_scaled(double factor, const T* from, int64_t count, double* to) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wide = hn::Set(d, factor);
  int64_t c = 0;
  for (; c + lanes <= count; c += lanes) {
    hn::StoreU(hn::MulAdd(wide, load(d, from + c), hn::LoadU(d, to + c)), d, to + c);
  }
  for (; c < count; ++c) to[c] += factor * static_cast<double>(from[c]);
}

/// to [columns, rows] = the transpose of from [rows, columns], padded with zeros up to `to_row`.
HWY_INLINE void transpose(int64_t rows, int64_t columns, const double* from, int64_t from_row,
                          double* to, int64_t to_row) {
  for (int64_t j = 0; j < columns; ++j, to += to_row) {
    for (int64_t i = 0; i < rows; ++i) to[i] = from[i * from_row + j];
    std::fill(to + rows, to + to_row, 0.0);
  }
}

/// Over `count` entries, a multiple of kTableStep.
HWY_INLINE double dot(const double* a, const double* b, int64_t count) {
  const Wide d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t c = 0; c < count; c += lanes) {
    sum = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::equivariant
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

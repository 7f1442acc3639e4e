// Declares matrix tiles, which AMX or plain C++ multiplies.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/common/half.h"

// Matrix tiles: 16 rows of 64 bytes, which AMX multiplies with one instruction. Operands are pairs of
// bf16 in slots of four bytes (see operand-inl.h), sums are fp32. Four primitives (zero, load,
// multiply, store) exist twice: as AMX instructions and, for tests on other machines, as plain C++
// that rounds in the same way.

#if defined(__x86_64__) && defined(__linux__)
#define NSIMPLEX_AMX 1
#endif

namespace nsimplex::kernels {

inline constexpr int kTileRows = 16, kTileSlots = 16;

enum class TileEngine { none, hardware, emulated };

/// Whether processor and system have AMX with products of bf16. The first call asks the system for
/// permission to use tiles, once per process.
bool has_amx_bf16();

/// The plain version of the tile registers. A product is that of TDPBF16PS: for every row and column
/// the products of the even numbers and those of the odd numbers are summed apart, pair after pair,
/// by fp32 fused multiply-adds; the two sums are added, then added to the tile. All of it rounds to
/// nearest even, takes subnormal operands as 0 and flushes subnormal results to 0.
class EmulatedTiles {
 public:
  template <int kTile>
  void zero() {
    std::memset(tile_[kTile], 0, sizeof tile_[kTile]);
  }
  /// `stride` counts bytes, here and below.
  template <int kTile>
  void load(const void* from, int64_t stride) {
    for (int r = 0; r < kTileRows; ++r) {
      std::memcpy(tile_[kTile][r], static_cast<const char*>(from) + r * stride, 4 * kTileSlots);
    }
  }
  template <int kTile>
  void store(void* to, int64_t stride) const {
    for (int r = 0; r < kTileRows; ++r) {
      std::memcpy(static_cast<char*>(to) + r * stride, tile_[kTile][r], 4 * kTileSlots);
    }
  }
  /// sum += a b.
  template <int kSum, int kA, int kB>
  void multiply() {
    add_product(tile_[kSum], tile_[kA], tile_[kB]);
  }

 private:
  using Tile = uint32_t[kTileRows][kTileSlots];
  static void add_product(Tile& sum, const Tile& a, const Tile& b);

  Tile tile_[8];
};

/// c = a b, or c += a b. Rows and columns of c are multiples of 16, and so is the depth. The depth
/// and all strides count slots.
struct TileProduct {
  float* c;
  int64_t c_row;
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t b_row;
  int64_t rows, columns, depth;
  bool add = false;
};

#ifdef NSIMPLEX_AMX

// By assembler instructions, like those of AVX512-BF16: no function then needs a target attribute,
// and none is kept from being inlined.
struct HardwareTiles {
  template <int kTile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kSum, int kA, int kB>
  void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};

#endif

// kRows x kColumns tiles of c, in registers 0 to 3; operands are in 4 to 7. With both, a load serves
// two products.
template <int kRows, int kColumns, class Tiles>
[[gnu::always_inline]] inline void multiply_some(Tiles& tiles, const TileProduct& p, int64_t row,
                                                 int64_t column) {
  float* const c = p.c + row * p.c_row + column;
  const int64_t c_bytes = 4 * p.c_row, a_bytes = 4 * p.a_row, b_bytes = 4 * p.b_row;
  float* const c_below = c + kTileRows * p.c_row;
  if (p.add) {
    tiles.template load<0>(c, c_bytes);
    if constexpr (kColumns == 2) tiles.template load<1>(c + kTileSlots, c_bytes);
    if constexpr (kRows == 2) tiles.template load<2>(c_below, c_bytes);
    if constexpr (kRows == 2 && kColumns == 2)
      tiles.template load<3>(c_below + kTileSlots, c_bytes);
  } else {
    tiles.template zero<0>();
    if constexpr (kColumns == 2) tiles.template zero<1>();
    if constexpr (kRows == 2) tiles.template zero<2>();
    if constexpr (kRows == 2 && kColumns == 2) tiles.template zero<3>();
  }
  for (int64_t k = 0; k < p.depth; k += kTileSlots) {
    const float* const a = p.a + row * p.a_row + k;
    const float* const b = p.b + k * p.b_row + column;
    tiles.template load<4>(a, a_bytes);
    tiles.template load<6>(b, b_bytes);
    tiles.template multiply<0, 4, 6>();
    if constexpr (kColumns == 2) {
      tiles.template load<7>(b + kTileSlots, b_bytes);
      tiles.template multiply<1, 4, 7>();
    }
    if constexpr (kRows == 2) {
      tiles.template load<5>(a + kTileRows * p.a_row, a_bytes);
      tiles.template multiply<2, 5, 6>();
      if constexpr (kColumns == 2) tiles.template multiply<3, 5, 7>();
    }
  }
  tiles.template store<0>(c, c_bytes);
  if constexpr (kColumns == 2) tiles.template store<1>(c + kTileSlots, c_bytes);
  if constexpr (kRows == 2) tiles.template store<2>(c_below, c_bytes);
  if constexpr (kRows == 2 && kColumns == 2) tiles.template store<3>(c_below + kTileSlots, c_bytes);
}

template <class Tiles>
[[gnu::always_inline]] inline void multiply_all(Tiles& tiles, const TileProduct& p) {
  for (int64_t column = 0; column < p.columns; column += 2 * kTileSlots) {
    const bool wide = column + kTileSlots < p.columns;
    for (int64_t row = 0; row < p.rows; row += 2 * kTileRows) {
      const bool tall = row + kTileRows < p.rows;
      if (tall && wide) {
        multiply_some<2, 2>(tiles, p, row, column);
      } else if (tall) {
        multiply_some<2, 1>(tiles, p, row, column);
      } else if (wide) {
        multiply_some<1, 2>(tiles, p, row, column);
      } else {
        multiply_some<1, 1>(tiles, p, row, column);
      }
    }
  }
}

/// Needs a TileSession of the same thread. The order of sums does not depend on the sizes. Inlined,
/// because a call needs clean vector registers and costs as much as a few small products.
[[gnu::always_inline]] inline void multiply_tiles([[maybe_unused]] TileEngine engine,
                                                  const TileProduct& product) {
#ifdef NSIMPLEX_AMX
  if (engine == TileEngine::hardware) {
    HardwareTiles tiles;
    return multiply_all(tiles, product);
  }
#endif
  EmulatedTiles tiles;
  multiply_all(tiles, product);
}

/// Configures the tile registers of this thread for a task and releases them afterwards.
class TileSession {
 public:
  explicit TileSession(TileEngine engine);
  ~TileSession();
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;

 private:
  const TileEngine engine_;
};

/// Rounds to bf16 as AVX512-BF16 does: to nearest even, subnormal numbers to 0.
constexpr uint16_t tile_number(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000u);
  return from_accum<Bf16>(value).bits;
}

}  // namespace nsimplex::kernels

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/common/half.h"

// Matrix tiles: 16 rows of 64 bytes, which AMX multiplies with one instruction. Operands are pairs of
// bf16 in slots of four bytes (see operand-inl.h), sums are fp32. Four primitives (zero, load,
// multiply, store) exist twice: as AMX instructions and, for tests on other machines, as plain C++
// that rounds in the same way.

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

/// Needs a TileSession of the same thread. The order of sums does not depend on the sizes.
void multiply_tiles(TileEngine engine, const TileProduct& product);

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

#include "kernels/cpu/shared/matrix_tiles.h"

#include <cmath>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#define NSIMPLEX_AMX 1
#endif

namespace nsimplex::kernels {
namespace {

// Subnormal numbers become 0 of the same sign.
float flushed(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t kept = (bits & 0x7f800000u) == 0 ? 0x80000000u : 0xffffffffu;
  return std::bit_cast<float>(bits & kept);
}

// The numbers of a tile: even ones, then odd ones.
struct Numbers {
  float at[2][kTileRows][kTileSlots];
  bool usual = true;  // 0, or from 2^-50 to 2^60 in size

  explicit Numbers(const uint32_t (&tile)[kTileRows][kTileSlots]) {
    for (int r = 0; r < kTileRows; ++r) {
      for (int k = 0; k < kTileSlots; ++k) {
        const uint32_t slot = tile[r][k];
        at[0][r][k] = flushed(std::bit_cast<float>(slot << 16));
        at[1][r][k] = flushed(std::bit_cast<float>(slot & 0xffff0000u));
        for (int half = 0; half < 2; ++half) {
          const float size = std::abs(at[half][r][k]);
          usual &= size == 0.0f || (size >= 0x1p-50f && size <= 0x1p60f);
        }
      }
    }
  }
};

// Fused multiply-adds in fp32. A product of two bf16 is exact in fp64. So is its sum with an fp32
// number, unless one of them is too small to change the other.
void multiply_add_any(float factor, const float (&numbers)[kTileSlots], float (&sums)[kTileSlots]) {
  for (int n = 0; n < kTileSlots; ++n) {
    sums[n] = flushed(static_cast<float>(static_cast<double>(factor) * numbers[n] + sums[n]));
  }
}

// The same for usual numbers, faster: products are exact in fp32, and all sums are multiples of
// 2^-114, so none is subnormal.
void multiply_add_usual(float factor, const float (&numbers)[kTileSlots],
                        float (&sums)[kTileSlots]) {
  for (int n = 0; n < kTileSlots; ++n) sums[n] += factor * numbers[n];
}

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

// Eight tiles of 16 rows of 64 bytes: palette 1.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

#endif

// kRows x kColumns tiles of c, in registers 0 to 3; operands are in 4 to 7. With both, a load serves
// two products.
template <int kRows, int kColumns, class Tiles>
void multiply_some(Tiles& tiles, const TileProduct& p, int64_t row, int64_t column) {
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
void multiply_all(Tiles& tiles, const TileProduct& p) {
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

}  // namespace

void EmulatedTiles::add_product(Tile& sum, const Tile& a, const Tile& b) {
  const Numbers left(a), right(b);
  const auto add = left.usual && right.usual ? multiply_add_usual : multiply_add_any;
  for (int m = 0; m < kTileRows; ++m) {
    float sums[2][kTileSlots] = {};
    for (int half = 0; half < 2; ++half) {
      for (int k = 0; k < kTileSlots; ++k) {
        add(left.at[half][m][k], right.at[half][k], sums[half]);
      }
    }
    for (int n = 0; n < kTileSlots; ++n) {
      const float before = flushed(std::bit_cast<float>(sum[m][n]));
      const float product = flushed(sums[0][n] + sums[1][n]);
      sum[m][n] = std::bit_cast<uint32_t>(flushed(before + product));
    }
  }
}

bool has_amx_bf16() {
#ifdef NSIMPLEX_AMX
  static const bool granted = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kOsXsave = 1u << 27, kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kOsXsave)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if ((d & (kAmxBf16 | kAmxTile)) != (kAmxBf16 | kAmxTile)) return false;
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr unsigned kTileState = 3u << 17;  // of XCR0: configuration and data of tiles
    if ((low & kTileState) != kTileState) return false;
    // Linux grants the data of tiles, which enlarges every thread's saved state, on request only.
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return granted;
#else
  return false;
#endif
}

void multiply_tiles([[maybe_unused]] TileEngine engine, const TileProduct& product) {
#ifdef NSIMPLEX_AMX
  if (engine == TileEngine::hardware) {
    HardwareTiles tiles;
    return multiply_all(tiles, product);
  }
#endif
  EmulatedTiles tiles;
  multiply_all(tiles, product);
}

TileSession::TileSession(TileEngine engine) : engine_(engine) {
#ifdef NSIMPLEX_AMX
  if (engine_ != TileEngine::hardware) return;
  static constexpr TileConfiguration kConfiguration;
  asm volatile("ldtilecfg %0" : : "m"(kConfiguration));
#endif
}

TileSession::~TileSession() {
#ifdef NSIMPLEX_AMX
  if (engine_ == TileEngine::hardware) asm volatile("tilerelease" : : : "memory");
#endif
}

}  // namespace nsimplex::kernels

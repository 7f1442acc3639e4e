// Multiplies matrix tiles by AMX, or by plain C++ that rounds in the same way.

#include "kernels/cpu/shared/matrix_tiles.h"

#include <cmath>

#ifdef NSIMPLEX_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
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

// Eight tiles of 16 rows of 64 bytes: palette 1.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

#endif

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

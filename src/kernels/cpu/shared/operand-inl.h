// The operands of products, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_OPERAND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_OPERAND_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_OPERAND_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_OPERAND_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/shared/matrix_tiles.h"

// Products read their operands from slots of the computing type, R. A slot holds a number or a
// Bf16Pair: two neighbours along the depth, rounded to bf16, which AVX512-BF16 multiplies and adds
// in fp32 with one instruction. E selects the kind. Depths and strides along the depth count slots,
// so that the same code serves both. Numbers are converted to pairs in place. With Bf16Tile, slots
// hold pairs as well, but products are those of matrix tiles, of a whole block at once.

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class R>
using Tag = hn::ScalableTag<R>;
template <class R>
using Vec = hn::Vec<Tag<R>>;

struct Bf16Pair {};
struct Bf16Tile {};

template <class E>
inline constexpr bool kTiled = std::is_same_v<E, Bf16Tile>;

/// Numbers of one slot.
template <class E>
inline constexpr int kNumbers = std::is_same_v<E, Bf16Pair> || kTiled<E> ? 2 : 1;

/// Slots that hold `count` numbers.
template <class E>
constexpr int64_t slots(int64_t count) {
  return (count + kNumbers<E> - 1) / kNumbers<E>;
}

/// sum + a b in every lane, of slots.
template <class E, class V>
HWY_INLINE V multiply_add_slots(V a, V b, V sum) {
  return hn::MulAdd(a, b, sum);
}

// For numbers the scale of a product is applied beforehand, at no cost. Pairs are rounded to bf16:
// bf16 inputs are used unchanged, and the sum is scaled in fp32.

/// scale * sum for pairs; a sum of numbers unchanged.
template <class E, class V>
HWY_INLINE V scaled(V sum, V /*scale*/) {
  return sum;
}

// Whether this target has Bf16Pair and Bf16Tile. The machine must be asked, too: see simd.h. Machines
// with AMX run AVX3; the plain version of the tiles belongs to AVX2, which more machines can test.
#undef NSIMPLEX_BF16_PAIRS
#undef NSIMPLEX_BF16_TILES
#if HWY_ARCH_X86_64 && (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2)
#define NSIMPLEX_BF16_TILES 1
inline constexpr TileEngine kTileEngine =
    HWY_TARGET == HWY_AVX3 ? TileEngine::hardware : TileEngine::emulated;

template <>
HWY_INLINE Vec<float> scaled<Bf16Tile, Vec<float>>(Vec<float> sum, Vec<float> scale) {
  Vec<float> product = hn::Mul(sum, scale);
  asm("" : "+v"(product.raw));  // as below
  return product;
}
#else
inline constexpr TileEngine kTileEngine = TileEngine::none;
#endif
#if HWY_TARGET == HWY_AVX3 && HWY_ARCH_X86_64
#define NSIMPLEX_BF16_PAIRS 1

// A function attribute, since Highway has no such target: functions compiled with other options
// than this namespace would not be inlined into it.
template <>
HWY_INLINE Vec<float> multiply_add_slots<Bf16Pair, Vec<float>>(Vec<float> a, Vec<float> b,
                                                               Vec<float> sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

template <>
HWY_INLINE Vec<float> scaled<Bf16Pair, Vec<float>>(Vec<float> sum, Vec<float> scale) {
  Vec<float> product = hn::Mul(sum, scale);
  // Rounded before a maximum is subtracted, as the maximum was. A compiler that fuses the two would
  // leave the rounding in a difference of equal scores.
  asm("" : "+v"(product.raw));
  return product;
}

#endif

/// Converts numbers of a row to pairs of neighbours, in its first half. With tiles, zeros complete
/// the last tile.
template <class E>
void pair_row([[maybe_unused]] float* row, [[maybe_unused]] int64_t count) {
#if defined(NSIMPLEX_BF16_PAIRS)
  for (int64_t c = 0; c < count; c += 16) {
    __m256i pairs;
    asm("vcvtneps2bf16 %1, %0" : "=v"(pairs) : "v"(_mm512_load_ps(row + c)));
    _mm256_store_si256(reinterpret_cast<__m256i*>(row + c / 2), pairs);
  }
#elif defined(NSIMPLEX_BF16_TILES)
  for (int64_t c = 0; c < count; ++c) {
    const uint16_t number = tile_number(row[c]);
    std::memcpy(reinterpret_cast<char*>(row) + 2 * c, &number, 2);
  }
#endif
  if constexpr (kTiled<E>) {
    const int64_t end = (count + 2 * kTileSlots - 1) / (2 * kTileSlots) * kTileSlots;
    std::memset(row + count / 2, 0, (end - count / 2) * sizeof(float));
  }
}

/// Stores two vectors of a row as pairs of neighbours.
template <class E>
HWY_INLINE void store_pairs([[maybe_unused]] Vec<float> first, [[maybe_unused]] Vec<float> second,
                            [[maybe_unused]] float* to) {
#if defined(NSIMPLEX_BF16_PAIRS)
  __m512i pairs;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs) : "v"(first.raw), "v"(second.raw));
  _mm512_store_si512(to, pairs);
#elif defined(NSIMPLEX_BF16_TILES)
  const Tag<float> d;
  HWY_ALIGN float numbers[2 * hn::MaxLanes(d)];
  hn::Store(first, d, numbers);
  hn::Store(second, d, numbers + hn::MaxLanes(d));
  pair_row<E>(numbers, 2 * hn::MaxLanes(d));
  std::memcpy(to, numbers, sizeof numbers / 2);
#endif
}

/// to[c] = the pair (first[c], second[c]); `to` may be `first`, or before both.
template <class E>
void pair_rows([[maybe_unused]] const float* first, [[maybe_unused]] const float* second,
               [[maybe_unused]] int64_t count, [[maybe_unused]] float* to) {
#ifdef NSIMPLEX_BF16_PAIRS
  for (int64_t c = 0; c < count; c += 16) {
    __m512i both;
    asm("vcvtne2ps2bf16 %1, %2, %0"
        : "=v"(both)
        : "v"(_mm512_load_ps(first + c)), "v"(_mm512_load_ps(second + c)));
    const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(both));
    const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1));
    _mm512_store_si512(to + c, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
#elif defined(NSIMPLEX_BF16_TILES)
  for (int64_t c = 0; c < count; ++c) {
    const uint32_t low = tile_number(first[c]), high = tile_number(second[c]);
    to[c] = std::bit_cast<float>(low | high << 16);
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

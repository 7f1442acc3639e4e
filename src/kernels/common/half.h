// The 16-bit storage types Bf16 and Fp16, and their conversions to and from float.

#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

// The 16-bit storage types of kernels, as bits with conversions; kernels compute in fp32. Their
// layout is that of bfloat16 and half in other libraries.

namespace nsimplex::kernels {

/// bfloat16: the upper half of an fp32 number.
struct Bf16 {
  uint16_t bits;
};

/// IEEE 754 binary16.
struct Fp16 {
  uint16_t bits;
};

/// The type for computations: softmax statistics and other accumulations are never below fp32.
template <class T>
using Accum = std::conditional_t<std::is_same_v<T, double>, double, float>;

constexpr double to_accum(double value) { return value; }
constexpr float to_accum(float value) { return value; }
constexpr float to_accum(Bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
constexpr float to_accum(Fp16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  // The exponent field of fp16, read as that of fp32, is 112 too low. The product corrects this,
  // also for subnormal numbers. Infinity and NaN keep the highest exponent.
  const float scaled = std::bit_cast<float>(rest) * 0x1p112f;
  const uint32_t bits = rest >= 0x0f800000u ? rest | 0x7f800000u : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(sign | bits);
}

/// Rounds to nearest, ties to even; NaN stays a (quiet) NaN.
template <class T>
constexpr T from_accum(Accum<T> value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (value != value) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
    return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
  } else if constexpr (std::is_same_v<T, Fp16>) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t rest = bits & 0x7fffffffu;
    const auto with_sign = [sign](uint32_t half) {
      return Fp16{static_cast<uint16_t>(sign | half)};
    };
    if (value != value) return with_sign(0x7e00u);
    if (rest >= 0x477ff000u) return with_sign(0x7c00u);  // rounds to 2^16 or more: infinity
    if (rest < 0x38800000u) {
      // Below 2^-14, where fp16 has steps of 2^-24: adding 0.5 makes this the last place of fp32.
      const float counted = std::bit_cast<float>(rest) + 0.5f;
      return with_sign(std::bit_cast<uint32_t>(counted) - std::bit_cast<uint32_t>(0.5f));
    }
    return with_sign((rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13);
  } else {
    return value;
  }
}

}  // namespace nsimplex::kernels

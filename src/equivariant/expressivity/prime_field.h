#pragma once

#include <cstdint>

#include "support/random.h"

// Integers modulo the Mersenne prime 2^61 - 1, in [0, kPrime).

namespace nsimplex::equivariant::field {

inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

constexpr uint64_t reduce(uint64_t value) {
  const uint64_t folded = (value & kPrime) + (value >> 61);
  return folded >= kPrime ? folded - kPrime : folded;
}

constexpr uint64_t add(uint64_t a, uint64_t b) { return reduce(a + b); }

constexpr uint64_t multiply(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return reduce((static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61));
}

/// A non-linear function of the field into itself that no equation of low degree describes: one of
/// as many as there are seeds.
constexpr uint64_t mix(uint64_t seed, uint64_t value) { return reduce(random_bits(seed, value)); }

}  // namespace nsimplex::equivariant::field

// The hash that decides which tuples dropout keeps.

#pragma once

#include <cstdint>

// Which tuples dropout keeps: a pure function of the seed and the position of the tuple. So forward
// and backward, every device and every split into tasks agree without storing anything. The 32-bit
// key of a tuple is the exclusive or of one hash for its row (seed, batch entry, query head, query)
// and one for every (axis, key). For any axis that a kernel vectorises over, a tile therefore needs
// one constant per row and one vector of key hashes.

namespace nsimplex::kernels {

inline constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15u;

/// One step of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014): the output for state `x`.
constexpr uint64_t splitmix64(uint64_t x) {
  x += kGoldenGamma;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// The finaliser of 32-bit MurmurHash3 (Austin Appleby, public domain): a bijection in which every
/// bit of the input affects every bit of the output.
constexpr uint32_t fmix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

/// Hash of a row of tuples. `row` counts (batch entry, query head), heads fastest: b * Hq + h.
constexpr uint32_t hash_row(uint64_t seed, int64_t row, int64_t query) {
  uint64_t hash = splitmix64(seed);
  hash = splitmix64(hash ^ static_cast<uint64_t>(row));
  hash = splitmix64(hash ^ static_cast<uint64_t>(query));
  return static_cast<uint32_t>(hash);  // the low half
}

/// Hash of key `key` of the caller's axis `axis` (counted from 0).
constexpr uint32_t hash_key(int axis, int64_t key) {
  return static_cast<uint32_t>(
      splitmix64(static_cast<uint64_t>(key) + static_cast<uint64_t>(axis + 1) * kGoldenGamma));
}

/// Tuples whose mixed key is below this are dropped: floor(p 2^32), for 0 <= p < 1.
constexpr uint32_t drop_threshold(double p) { return static_cast<uint32_t>(p * 4294967296.0); }

/// Whether a tuple is kept, given hash_row() xor hash_key() of each of its keys.
constexpr bool keeps_tuple(uint32_t key, uint32_t threshold) { return fmix32(key) >= threshold; }

}  // namespace nsimplex::kernels

// Random numbers that depend only on a seed and a count, the same on every machine.

#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace nsimplex {

/// 64 random bits that depend only on (seed, index): the index-th output of SplitMix64, whose state
/// is a counter (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014). The seed is mixed first, so that seeds 1, 2, 3 give unrelated streams.
constexpr uint64_t random_bits(uint64_t seed, uint64_t index) {
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  return mix(mix(seed + kGolden) + (index + 1) * kGolden);
}

/// A number in [0, bound) from 64 random bits, with a bias below bound / 2^64.
constexpr uint64_t random_below(uint64_t bound, uint64_t bits) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

/// A number in [0, 1) from 64 random bits.
constexpr double random_unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// A sequence of numbers that is the same on every machine: random_bits() of a seed and a count.
class RandomStream {
 public:
  explicit constexpr RandomStream(uint64_t seed) : seed_(seed) {}

  constexpr uint64_t bits() { return random_bits(seed_, ++count_); }
  constexpr double unit() { return random_unit(bits()); }

  /// With mean 1: P(x > t) = exp(-t).
  double exponential() { return -std::log(1.0 - unit()); }

  /// From the standard normal distribution (Box and Muller), with two draws.
  double normal() {
    const double radius = std::sqrt(2.0 * exponential());
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

  /// In [0, bound), bound > 0.
  constexpr int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_below(static_cast<uint64_t>(bound), bits()));
  }

 private:
  uint64_t seed_, count_ = 0;
};

}  // namespace nsimplex

// Products and sums of sizes that do not overflow, and a limit on results that sizes alone
// determine.

#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string_view>

#include "support/require.h"

namespace nsimplex {

/// The most numbers in what a call makes from sizes alone: 4 GiB of 8-byte numbers.
inline constexpr int64_t kMostMade = int64_t{1} << 29;

/// a * b of numbers that are not negative; the largest int64 where the product is larger.
inline int64_t saturating_product(int64_t a, int64_t b) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  return b != 0 && a > kLargest / b ? kLargest : a * b;
}

/// a + b of numbers that are not negative; the largest int64 where the sum is larger.
inline int64_t saturating_sum(int64_t a, int64_t b) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  return a > kLargest - b ? kLargest : a + b;
}

/// Throws InputError "ARGUMENT: expected at most 536870912 numbers in the result, got 2 x 3" if the
/// product of sizes exceeds kMostMade. Call it before the first allocation; a negative size counts
/// as 0, since another check refuses it.
inline void require_room(std::string_view argument, std::initializer_list<int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes)
    product = saturating_product(product, std::max<int64_t>(size, 0));
  if (product <= kMostMade) return;
  std::ostringstream got;
  for (const int64_t size : sizes) got << (got.tellp() > 0 ? " x " : "") << size;
  require(false, argument, ": expected at most ", kMostMade, " numbers in the result, got ",
          got.str());
}

}  // namespace nsimplex

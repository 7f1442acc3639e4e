// Quotients and multiples, rounded up.

#pragma once

#include <cstdint>

namespace nsimplex {

/// a / b, rounded up, for a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The smallest multiple of b that is not below a.
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace nsimplex

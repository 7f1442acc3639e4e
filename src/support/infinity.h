// Infinity as a double.

#pragma once

#include <limits>

namespace nsimplex {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace nsimplex

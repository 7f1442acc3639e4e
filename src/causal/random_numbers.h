#pragma once

#include <cmath>
#include <numbers>

#include "support/random.h"

namespace nsimplex::causal {

/// A number of the standard normal distribution (Box and Muller), the same on every machine but for
/// rounding.
inline double random_normal(RandomStream& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

}  // namespace nsimplex::causal

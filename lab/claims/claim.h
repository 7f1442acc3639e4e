#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace nsimplex::causal {

/// A statement of a paper that is tested, with the slack of each draw. A slack that is below 0 by
/// more than rounding, or not a number, is a violation.
struct Claim {
  std::string source, text;
  std::vector<double> slacks = {};

  static constexpr double kRounding = 1e-12;
  static bool holds(double slack) { return slack >= -kRounding; }
};

}  // namespace nsimplex::causal

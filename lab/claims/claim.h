#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace nsimplex::causal {

/// A statement of a paper put to the test: by how much each draw kept to it. What is below 0 by
/// more than rounding violates it; what is not a number, too.
struct Claim {
  std::string source, text;
  std::vector<double> slacks = {};

  static constexpr double kRounding = 1e-12;
  static bool holds(double slack) { return slack >= -kRounding; }
};

}  // namespace nsimplex::causal

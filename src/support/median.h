// The median of a list of numbers.

#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace nsimplex {

/// The middle value; of an even number of values the lower one of the middle two, which is a value
/// that occurs. NaN if there is none.
inline double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace nsimplex

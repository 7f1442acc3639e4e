#include "support/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace nsimplex {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<double> places(values.size(), std::numeric_limits<double>::quiet_NaN());
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); })) return places;
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = 0.5 * static_cast<double>(begin + 1 + end);
    for (; begin < end; ++begin) places[order[begin]] = shared;
  }
  return places;
}

double rank_correlation(std::span<const double> left, std::span<const double> right) {
  const std::vector<double> a = ranks(left), b = ranks(right);
  const double middle = 0.5 * static_cast<double>(left.size() + 1);  // of both
  double both = 0, of_a = 0, of_b = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    both += (a[k] - middle) * (b[k] - middle);
    of_a += (a[k] - middle) * (a[k] - middle);
    of_b += (b[k] - middle) * (b[k] - middle);
  }
  return both / std::sqrt(of_a * of_b);
}

}  // namespace nsimplex

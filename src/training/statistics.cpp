#include "training/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/infinity.h"

namespace nsimplex::training {
namespace {

// Student's t at 97.5 % for 1 .. 30 degrees of freedom; beyond, the normal value is 2 % low at
// most.
constexpr std::array<double, 30> kStudent = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Sum of (a - mean a) (b - mean b).
double products(std::span<const double> a, std::span<const double> b) {
  const double of_a = mean(a), of_b = mean(b);
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - of_a) * (b[i] - of_b);
  return sum;
}

}  // namespace

Interval confidence_interval(std::span<const double> values) {
  const size_t n = values.size();
  if (n == 0) return {std::numeric_limits<double>::quiet_NaN(), -kInfinity, kInfinity, 0};
  const double middle = mean(values);
  if (n == 1) return {middle, -kInfinity, kInfinity, 1};
  const double deviation = spread(values).deviation;
  const double t = n - 2 < kStudent.size() ? kStudent[n - 2] : kNormal;
  const double half = t * deviation / std::sqrt(static_cast<double>(n));
  return {middle, middle - half, middle + half, static_cast<int64_t>(n)};
}

Spread spread(std::span<const double> values) {
  if (values.empty()) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {kNone, kNone};
  }
  const auto others = static_cast<double>(std::max<size_t>(values.size() - 1, 1));
  return {mean(values), std::sqrt(products(values, values) / others)};
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  const double xy = products(x, y), xx = products(x, x), yy = products(y, y);
  const double slope = xy / xx;
  return {slope, mean(y) - slope * mean(x), yy > 0 ? xy * xy / (xx * yy) : 1.0};
}

}  // namespace nsimplex::training

#pragma once

#include <cstdint>
#include <span>
#include <vector>

// What a few repetitions of an experiment say.
namespace nsimplex::training {

/// Mean of n values and its 95 % confidence interval, mean +- t s / sqrt(n) with Student's t of n -
/// 1 degrees of freedom and s the sample deviation. One value has an infinite interval.
struct Interval {
  double mean = 0.0, low = 0.0, high = 0.0;
  int64_t count = 0;
};
Interval confidence_interval(std::span<const double> values);

/// Mean of n values and their sample deviation, sqrt(sum of squares / (n - 1)); 0 for one value,
/// NaN both where there is none.
struct Spread {
  double mean = 0.0, deviation = 0.0;
};
Spread spread(std::span<const double> values);

/// The middle value; of an even number the lower one of the two. NaN where there is none.
double median(std::vector<double> values);

/// Least squares of y = slope x + intercept. R^2 is 1 - residual / total variance.
struct Line {
  double slope = 0.0, intercept = 0.0, r_squared = 0.0;
};
Line fit_line(std::span<const double> x, std::span<const double> y);

}  // namespace nsimplex::training

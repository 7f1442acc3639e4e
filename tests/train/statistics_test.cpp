#include "train/scores.h"

#include <gmock/gmock.h>

#include <cmath>

namespace nsimplex::training {
namespace {

TEST(ConfidenceInterval, OfThreeValues) {
  // Deviation 1, t of two degrees of freedom.
  const std::vector<double> values = {1.0, 2.0, 3.0};
  const Interval interval = confidence_interval(values);
  EXPECT_DOUBLE_EQ(interval.mean, 2.0);
  EXPECT_NEAR(interval.high - 2.0, 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(2.0 - interval.low, 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(interval.count, 3);
}

TEST(ConfidenceInterval, KnowsWhatItCannotKnow) {
  const std::vector<double> one = {0.5}, equal(40, 2.0);
  EXPECT_EQ(confidence_interval(one).mean, 0.5);
  EXPECT_TRUE(std::isinf(confidence_interval(one).low));
  EXPECT_TRUE(std::isinf(confidence_interval(one).high));
  EXPECT_TRUE(std::isnan(confidence_interval({}).mean));
  EXPECT_EQ(confidence_interval({}).count, 0);
  EXPECT_EQ(confidence_interval(equal).low, 2.0);
  EXPECT_EQ(confidence_interval(equal).high, 2.0);
}

TEST(Statistics, SpreadOfAFewValues) {
  const double values[] = {1.0, 2.0, 6.0};
  EXPECT_DOUBLE_EQ(spread(values).mean, 3.0);
  EXPECT_DOUBLE_EQ(spread(values).deviation, std::sqrt(7.0));
  EXPECT_EQ(spread(std::span(values, 1)).deviation, 0.0);
  EXPECT_TRUE(std::isnan(spread({}).mean));
}

TEST(FitLine, FindsALineAndSaysHowWell) {
  const std::vector<double> x = {0.0, 1.0, 2.0, 3.0}, y = {1.0, 3.0, 5.0, 7.0};
  const Line exact = fit_line(x, y);
  EXPECT_DOUBLE_EQ(exact.slope, 2.0);
  EXPECT_DOUBLE_EQ(exact.intercept, 1.0);
  EXPECT_DOUBLE_EQ(exact.r_squared, 1.0);
  // Residuals 0.5, -0.5, -0.5, 0.5 of 2 x + 1: the fit stays, R^2 = 1 - 1 / 21.
  const std::vector<double> rough = {1.5, 2.5, 4.5, 7.5};
  const Line fit = fit_line(x, rough);
  EXPECT_NEAR(fit.slope, 2.0, 1e-12);
  EXPECT_NEAR(fit.r_squared, 1 - 1.0 / 21.0, 1e-12);
}

}  // namespace
}  // namespace nsimplex::training

#include "lab/claims/robustness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nsimplex::causal {
namespace {

class RobustnessOfScores : public ::testing::Test {
 protected:
  // A distance of 3 standard errors in thousands of draws is seen in most pairs at sigma = .3.
  static const Robustness& made() {
    static const Robustness result = robustness({.planes = 4,
                                                 .sigmas = {0.1, 0.3},
                                                 .pairs = 6,
                                                 .draws = 2000,
                                                 .repetitions = 10,
                                                 .seed = 3,
                                                 .checkpoint = [](int64_t done) { last = done; }});
    return result;
  }

  static bool holds(const std::string& source, const std::string& text) {
    for (const analysis::Statement& claim : made().claims) {
      if (claim.source() != source || !claim.name().starts_with(text)) continue;
      EXPECT_GT(claim.draws(), 0);
      return claim.violations() == 0;
    }
    ADD_FAILURE() << source << ": " << text;
    return false;
  }

  static inline int64_t last = 0;
};

TEST_F(RobustnessOfScores, ReportsEveryStep) {
  made();
  EXPECT_EQ(last, robustness_steps({.sigmas = {0.1, 0.3}, .pairs = 6}));
}

TEST_F(RobustnessOfScores, AccuracyAtTheCornerIsBelowThePaper) {
  EXPECT_FALSE(holds("Fig. S1", "for noise up to pi / 12"));
  const Accuracy& corner = made().accuracies.back();
  EXPECT_DOUBLE_EQ(corner.exact, std::exp(-std::pow(std::numbers::pi / 12, 2)));
  for (const Accuracy& each : made().accuracies) EXPECT_NEAR(each.drawn, each.exact, 0.02);
}

TEST_F(RobustnessOfScores, TheMeanShrinks) {
  EXPECT_TRUE(holds("Eq. A.91, sigma = 0.1", "it is exp"));
  EXPECT_TRUE(holds("Eq. A.91, sigma = 0.3", "it is exp"));
  EXPECT_FALSE(holds("Prop. A.10 as printed, sigma = 0.3", "P(|xi| >= eps)"));
  EXPECT_TRUE(holds("Prop. A.10", "P(|xi - E xi| >= eps)"));
  const Bias& last = made().biases.back();
  const double kept = std::exp(-std::pow(0.25 * std::numbers::pi * 0.3, 2));
  EXPECT_NEAR(last.limit, (kept - 1) * last.score, 1e-12);
  EXPECT_NEAR(last.mean, last.limit, 0.1 * std::abs(last.limit));
}

TEST_F(RobustnessOfScores, DistinctionNeedsTheSine) {
  EXPECT_TRUE(holds("Prop. A.8, proof", "without the sine"));
  EXPECT_FALSE(holds("Prop. A.8", "with it, too: projections that turn"));
  EXPECT_TRUE(holds("tr(R Cov(q, k))", "with the sine"));
  EXPECT_FALSE(holds("tr(R Cov(q, k))", "without the sine"));
  for (const Distinction& each : made().distinctions) {
    EXPECT_NEAR(each.drawn, each.with_sine, 5 * each.error);
  }
}

}  // namespace
}  // namespace nsimplex::causal

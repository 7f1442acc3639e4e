#include "analysis/statement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace nsimplex::analysis {
namespace {

TEST(Statement, CountsDrawsAndViolations) {
  Statement statement("a <= b");
  EXPECT_FALSE(statement.holds());
  EXPECT_TRUE(std::isnan(statement.share()));
  EXPECT_TRUE(std::isnan(statement.median_slack()));
  for (const double right : {2.0, 8.0, 4.0}) statement.add_bound(1, right);
  EXPECT_TRUE(statement.holds());
  EXPECT_EQ(statement.median_slack(), 4);
  statement.add_bound(1, 0.5);
  EXPECT_FALSE(statement.holds());
  EXPECT_EQ(statement.draws(), 4);
  EXPECT_EQ(statement.violations(), 1);
  EXPECT_EQ(statement.first_violation(), 3);
  EXPECT_EQ(statement.share(), 0.75);
  EXPECT_EQ(statement.median_slack(), 2);  // of 0.5, 2, 4, 8
}

TEST(Statement, BoundsHoldUpToRounding) {
  Statement statement("a <= b");
  statement.add_bound(1 + 1e-10, 1);
  statement.add_bound(0, 0);
  EXPECT_TRUE(statement.holds());
  EXPECT_EQ(statement.median_slack(), 1 / (1 + 1e-10));
  statement.add_bound(1 + 1e-8, 1);
  statement.add_bound(std::numeric_limits<double>::quiet_NaN(), 1);
  statement.add_bound(1e-30, 0);
  EXPECT_EQ(statement.violations(), 3);
}

TEST(Statement, OfAPaperHasSlacksThatAreNotNegative) {
  Statement statement("Prop. 4.1", "a >= 0");
  EXPECT_EQ(statement.source(), "Prop. 4.1");
  EXPECT_EQ(statement.name(), "a >= 0");
  for (const double slack : {0.0, -1e-13, 2.0}) statement.add_slack(slack);
  EXPECT_TRUE(statement.holds());
  EXPECT_EQ(statement.median_slack(), 0);
  statement.add_slack(-1e-11);
  statement.add_slack(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(statement.violations(), 2);
  EXPECT_EQ(statement.first_violation(), 3);
}

TEST(Statement, MayClaimAShareOfItsDraws) {
  Statement statement("most", 0.95);
  for (int i = 0; i < 100; ++i) statement.add(i >= 5, 0);
  EXPECT_TRUE(statement.holds());
  statement.add(false, 0);
  EXPECT_FALSE(statement.holds());
}

}  // namespace
}  // namespace nsimplex::analysis

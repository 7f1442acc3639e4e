#include "train/optimizer.h"

#include <gtest/gtest.h>

namespace nsimplex::training {
namespace {

TEST(Schedule, Values) {
  const Schedule schedule{.peak = 1.0, .floor = 0.1, .warmup = 4, .steps = 13};
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(8), 0.55);  // half way down
  EXPECT_DOUBLE_EQ(schedule.rate(12), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(100), 0.1);
}

TEST(Schedule, FallsAfterWarmUpAndRisesBefore) {
  const Schedule schedule{.peak = 3e-3, .floor = 0, .warmup = 100, .steps = 2000};
  for (int64_t step = 1; step < 2000; ++step) {
    if (step <= 100) {
      EXPECT_GT(schedule.rate(step), schedule.rate(step - 1));
    } else {
      EXPECT_LT(schedule.rate(step), schedule.rate(step - 1));
    }
  }
}

TEST(Schedule, EdgesAreFinite) {
  EXPECT_DOUBLE_EQ((Schedule{1.0, 0.0, 0, 1}.rate(0)), 1.0);
  EXPECT_DOUBLE_EQ((Schedule{1.0, 0.0, 5, 3}.rate(2)), 0.5);  // ends within the warm-up
}

}  // namespace
}  // namespace nsimplex::training

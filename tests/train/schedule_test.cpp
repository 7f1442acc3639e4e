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

TEST(LinearSchedule, Values) {
  const LinearSchedule line{.peak = 1.0, .warmup = 4, .steps = 14, .decays = true};
  EXPECT_DOUBLE_EQ(line.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(line.rate(3), 0.8);
  EXPECT_DOUBLE_EQ(line.rate(4), 1.0);
  EXPECT_DOUBLE_EQ(line.rate(9), 0.5);  // half way down
  EXPECT_DOUBLE_EQ(line.rate(13), 0.1);
  EXPECT_DOUBLE_EQ(line.rate(14), 0.0);
  EXPECT_DOUBLE_EQ(line.rate(100), 0.0);
  // By time where that is further.
  EXPECT_DOUBLE_EQ(line.rate(3, 0.9), 0.8);
  EXPECT_DOUBLE_EQ(line.rate(9, 0.2), 0.5);
  EXPECT_DOUBLE_EQ(line.rate(9, 0.75), 0.25);
  EXPECT_DOUBLE_EQ(line.rate(9, 1.5), 0.0);
  const LinearSchedule constant{.peak = 1.0, .warmup = 1, .steps = 14, .decays = false};
  EXPECT_DOUBLE_EQ(constant.rate(0), 0.5);
  EXPECT_DOUBLE_EQ(constant.rate(1), 1.0);
  EXPECT_DOUBLE_EQ(constant.rate(13), 1.0);
  EXPECT_DOUBLE_EQ(constant.rate(13, 0.9), 1.0);
}

}  // namespace
}  // namespace nsimplex::training

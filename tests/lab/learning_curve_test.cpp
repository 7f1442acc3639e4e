#include "lab/language/comparison.h"

#include <gmock/gmock.h>

namespace nsimplex::training {
namespace {

using testing::SizeIs;

// Loss 5 - 0.04 step at steps 10, 20, .. 100, as a model has it that needs `factor` times the
// steps.
std::vector<CurvePoint> curve(double factor) {
  std::vector<CurvePoint> points;
  for (int64_t step = 10; step <= 100; step += 10) {
    points.push_back({step, 5.0 - 0.04 * static_cast<double>(step) / factor});
  }
  return points;
}

TEST(Smooth, KeepsLinesAndAveragesNoise) {
  std::vector<CurvePoint> line, noise;
  for (int64_t i = 0; i < 7; ++i) {
    line.push_back({i, 3.0 - 0.25 * static_cast<double>(i)});
    noise.push_back({i, i % 2 == 0 ? 1.0 : 0.0});
  }
  const auto same = smooth(line, 2);
  for (size_t i = 0; i < line.size(); ++i) EXPECT_DOUBLE_EQ(same[i].loss, line[i].loss);
  const auto quiet = smooth(noise, 2);
  EXPECT_DOUBLE_EQ(quiet[0].loss, 1.0);        // has no neighbour on its left
  EXPECT_DOUBLE_EQ(quiet[1].loss, 2.0 / 3.0);  // one on each side
  EXPECT_DOUBLE_EQ(quiet[2].loss, 3.0 / 5.0);
  EXPECT_DOUBLE_EQ(quiet[3].loss, 2.0 / 5.0);
  EXPECT_THAT(smooth({}, 2), SizeIs(0));
}

TEST(FirstStepAt, IsBetweenThePoints) {
  const std::vector<CurvePoint> falling = {{10, 3.0}, {20, 2.0}, {30, 2.5}, {40, 1.0}};
  EXPECT_EQ(first_step_at(falling, 3.0), 10.0);
  EXPECT_EQ(first_step_at(falling, 2.25), 17.5);
  EXPECT_EQ(first_step_at(falling, 2.0), 20.0);  // the first time, not the last
  EXPECT_EQ(first_step_at(falling, 1.75), 35.0);
  EXPECT_EQ(first_step_at(falling, 0.5), std::nullopt);
  EXPECT_EQ(first_step_at({}, 1.0), std::nullopt);
}

TEST(SpeedUp, OfOneThatNeedsAQuarterMoreSteps) {
  // Y needs 1.25 steps for each of X's; X's last losses are below all of Y's.
  const auto points = speed_up(curve(1.0), curve(1.25));
  ASSERT_THAT(points, SizeIs(8));
  EXPECT_EQ(points.front().step, 10);
  EXPECT_EQ(points.back().step, 80);
  for (const auto& point : points) EXPECT_NEAR(point.speed_up, 0.25, 1e-12);
}

TEST(SpeedUp, IsNoneAgainstItself) {
  for (const auto& point : speed_up(curve(1.0), curve(1.0))) EXPECT_NEAR(point.speed_up, 0, 1e-12);
}

TEST(SpeedUp, LeavesOutWhatCannotBeCompared) {
  // Y stands below X's first points from the start, and X ends below all of Y.
  const std::vector<CurvePoint> x = {{0, 9.0}, {10, 5.0}, {20, 3.0}, {30, 1.0}};
  const std::vector<CurvePoint> y = {{10, 4.0}, {20, 2.0}};
  const auto points = speed_up(x, y);
  ASSERT_THAT(points, SizeIs(1));
  EXPECT_EQ(points[0].step, 20);
  EXPECT_DOUBLE_EQ(points[0].speed_up, 15.0 / 20.0 - 1.0);
  EXPECT_THAT(speed_up(x, {}), SizeIs(0));
}

}  // namespace
}  // namespace nsimplex::training

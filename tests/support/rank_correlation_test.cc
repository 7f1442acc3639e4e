#include "support/ranking_metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace nsimplex {
namespace {

TEST(Ranks, OfEqualValuesAreShared) {
  const std::array values{3.0, -1.0, 3.0, 7.0};
  EXPECT_EQ(ranks(values), (std::vector<double>{2.5, 1, 2.5, 4}));
}

TEST(RankCorrelation, OfANumberThatIsNoneIsNone) {
  const std::array values{3.0, std::nan(""), 1.0}, others{1.0, 2.0, 3.0};
  for (const double place : ranks(values)) EXPECT_TRUE(std::isnan(place));
  EXPECT_TRUE(std::isnan(rank_correlation(values, others)));
}

TEST(RankCorrelation, SeesOrderAlone) {
  const std::array x{1.0, 2.0, 3.0, 4.0}, cubes{1.0, 8.0, 27.0, 64.0};
  const std::array falling{4.0, 3.0, 2.0, 1.0}, even{1.0, 1.0, 1.0, 1.0};
  EXPECT_DOUBLE_EQ(rank_correlation(x, cubes), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(x, falling), -1);
  EXPECT_TRUE(std::isnan(rank_correlation(x, even)));
  const std::array ties{1.0, 1.0, 2.0, 2.0};  // places 1.5 1.5 3.5 3.5
  EXPECT_DOUBLE_EQ(rank_correlation(x, ties), 2 / std::sqrt(5.0));
}

}  // namespace
}  // namespace nsimplex

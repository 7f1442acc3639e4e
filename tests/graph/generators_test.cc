#include "graph/generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace nsimplex::graph {
namespace {

TEST(PreferentialAttachment, LinksEveryNodeToDifferentOnes) {
  for (const int64_t links : {1, 2, 5}) {
    const std::vector<int64_t> edges = preferential_attachment(300, links, 3);
    ASSERT_EQ(std::ssize(edges), 2 * links * (300 - links));
    std::set<std::pair<int64_t, int64_t>> different;
    std::vector<int64_t> linked(300, 0);
    for (size_t i = 0; i < edges.size(); i += 2) {
      EXPECT_LT(edges[i], edges[i + 1]);
      different.emplace(edges[i], edges[i + 1]);
      ++linked[edges[i + 1]];
    }
    EXPECT_EQ(2 * different.size(), edges.size());
    for (int64_t node = 0; node < 300; ++node) {
      EXPECT_EQ(linked[node], node < links ? 0 : links) << node;
    }
  }
  EXPECT_TRUE(preferential_attachment(5, 5, 0).empty());
}

TEST(PreferentialAttachment, DependsOnTheSeedAlone) {
  EXPECT_EQ(preferential_attachment(100, 3, 1), preferential_attachment(100, 3, 1));
  EXPECT_NE(preferential_attachment(100, 3, 1), preferential_attachment(100, 3, 2));
  // A start of a longer one.
  const auto longer = preferential_attachment(200, 3, 1),
             shorter = preferential_attachment(100, 3, 1);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

// The shares of degrees that the growth tends to: P(k) = 2 m (m + 1) / (k (k + 1) (k + 2)), k >= m
// (Bollobas et al. 2001). Uniform attachment would leave P(m) = 1 / (m + 1) = 0.167 instead of
// 0.286.
TEST(PreferentialAttachment, HasTheDegreesOfThePaper) {
  constexpr int64_t kNodes = 50000, kLinks = 5;
  std::vector<int64_t> degree(kNodes, 0), count(kNodes, 0);
  for (const int64_t node : preferential_attachment(kNodes, kLinks, 11)) ++degree[node];
  for (const int64_t each : degree) ++count[each];
  for (int64_t k = kLinks; k < kLinks + 10; ++k) {
    const double share = 2. * kLinks * (kLinks + 1) / static_cast<double>(k * (k + 1) * (k + 2));
    EXPECT_NEAR(static_cast<double>(count[k]) / kNodes, share, 0.01) << k;
  }
  EXPECT_GT(*std::max_element(degree.begin(), degree.end()), 500);
}

}  // namespace
}  // namespace nsimplex::graph

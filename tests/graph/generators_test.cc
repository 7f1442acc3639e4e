#include "graph/random_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

TEST(RandomPoints, AreOnTheGridAndUniform) {
  const PointSets sets = random_points(2000, 20, 80, 7);
  ASSERT_EQ(sets.offsets.size(), 2001u);
  std::vector<int64_t> sizes(81, 0);
  for (size_t set = 0; set + 1 < sets.offsets.size(); ++set) {
    const int64_t size = sets.offsets[set + 1] - sets.offsets[set];
    ASSERT_TRUE(size >= 20 && size <= 80);
    ++sizes[size];
  }
  // 2000 / 61 = 33 of each size: more than 3 standard deviations of 5.7 would be rare in 61.
  for (int64_t size = 20; size <= 80; ++size) EXPECT_NEAR(sizes[size], 33, 24) << size;
  ASSERT_EQ(std::ssize(sets.coordinates), 2 * sets.offsets.back());
  std::vector<int64_t> cells(100, 0);
  for (size_t i = 0; i < sets.coordinates.size(); i += 2) {
    for (const size_t axis : {0, 1}) {
      const float value = sets.coordinates[i + axis];
      ASSERT_TRUE(value >= 0 && value < 1 &&
                  std::ldexp(value, 22) == std::round(std::ldexp(value, 22)));
    }
    ++cells[10 * int(10 * sets.coordinates[i]) + int(10 * sets.coordinates[i + 1])];
  }
  const auto expected = static_cast<double>(sets.offsets.back()) / 100;
  for (const int64_t cell : cells) EXPECT_NEAR(cell, expected, 5 * std::sqrt(expected));
}

TEST(RandomPoints, DependOnTheSeedAlone) {
  const PointSets few = random_points(3, 50, 50, 1), many = random_points(9, 50, 50, 1);
  EXPECT_TRUE(std::equal(few.coordinates.begin(), few.coordinates.end(), many.coordinates.begin()));
  EXPECT_NE(few.coordinates, random_points(3, 50, 50, 2).coordinates);
  // The same on every machine.
  const PointSets first = random_points(1, 2, 2, 1);
  EXPECT_EQ(first.coordinates, (std::vector<float>{3515937 * 0x1p-22F, 2419146 * 0x1p-22F,
                                                   2548469 * 0x1p-22F, 3775658 * 0x1p-22F}));
  EXPECT_TRUE(random_points(0, 1, 2, 1).coordinates.empty());
  EXPECT_EQ(random_points(2, 0, 0, 1).offsets, (std::vector<int64_t>{0, 0, 0}));
}

}  // namespace
}  // namespace nsimplex::graph

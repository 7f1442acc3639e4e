#include "equivariant/classes/partitions.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nsimplex::equivariant {
namespace {

TEST(Partitions, AreCountedByTheBellNumbersAndAscend) {
  const size_t bell[] = {1, 1, 2, 5, 15, 52, 203, 877};
  for (int64_t positions = 0; positions <= 7; ++positions) {
    const auto all = all_partitions(positions);
    EXPECT_EQ(all.size(), bell[positions]);
    EXPECT_TRUE(std::ranges::is_sorted(all));
    EXPECT_TRUE(std::ranges::adjacent_find(all) == all.end());
  }
}

// Summed over an interval of the lattice the Moebius function is 0, and 1 where it is one point.
TEST(Partitions, MoebiusInvertsSumsOverCoarserPartitions) {
  const auto all = all_partitions(5);
  for (const Partition& fine : all) {
    for (const Partition& coarse : all) {
      if (!coarsens(coarse, fine)) continue;
      int64_t sum = 0;
      for (const Partition& between : all) {
        if (coarsens(between, fine) && coarsens(coarse, between)) sum += moebius(fine, between);
      }
      EXPECT_EQ(sum, fine == coarse ? 1 : 0);
    }
  }
}

TEST(Partitions, SplitTellsSidesAndMatches) {
  // {i1 i3 j2}{i2}{j1}
  const SplitClass parts = split({0, 1, 0, 2, 0}, 3);
  EXPECT_EQ(parts.input, (Partition{0, 1, 0}));
  EXPECT_EQ(parts.output, (Partition{0, 1}));
  EXPECT_EQ(parts.match, (std::vector<int8_t>{1, -1}));
}

}  // namespace
}  // namespace nsimplex::equivariant

#include "analysis/mask_hypergraph.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nsimplex::analysis {
namespace {

int64_t radius_of(const MaskRows& mask) {
  return extent_of(mask_hypergraph(mask.view()).receivers, 0, mask.nodes()).radius;
}

TEST(MaskFamilies, RowsOfSmallMasks) {
  const KeySets keys{{0}, {0, 1}};
  const MaskRows pairs = product_mask(keys, 2);
  EXPECT_EQ(pairs.values, (std::vector<int64_t>{0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(pairs.row_offsets, (std::vector<int64_t>{0, 1, 5}));
  const MaskRows chains = path_mask(keys, 2);  // after key 0 only 0 follows
  EXPECT_EQ(chains.values, (std::vector<int64_t>{0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(chains.row_offsets, (std::vector<int64_t>{0, 1, 4}));
}

TEST(MaskFamilies, RadiiOfWindowsAreKnown) {
  for (int64_t order = 1; order <= 3; ++order) {
    for (int64_t width = 2; width <= 9; ++width) {
      const int64_t hops = (9 - 2) / (width - 1) + 1;  // from the first token to the last of 9
      EXPECT_EQ(radius_of(product_mask(window_keys(9, width), order)), hops);
      // A chain of keys goes as far as N windows.
      const int64_t reach = order * (width - 1);
      EXPECT_EQ(radius_of(path_mask(window_keys(9, width), order)), (8 + reach - 1) / reach);
    }
    EXPECT_EQ(radius_of(product_mask(band_keys(9, 1), order)), 4);
    EXPECT_EQ(radius_of(product_mask(band_keys(9, 8), order)), 1);
  }
}

TEST(MaskFamilies, RandomKeysAreDifferentAndHoldTheQuery) {
  RandomStream random(1);
  const KeySets keys = random_keys(20, 5, random);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(keys[i].size(), 5u);
    EXPECT_TRUE(std::ranges::binary_search(keys[i], i));
    EXPECT_EQ(std::ranges::adjacent_find(keys[i]), keys[i].end());
  }
  EXPECT_NE(random_keys(20, 5, random), keys);
  EXPECT_EQ(random_keys(3, 5, random), KeySets(3, {0, 1, 2}));
}

}  // namespace
}  // namespace nsimplex::analysis

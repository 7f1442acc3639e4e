#include "kernels/common/tuple_hash.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nsimplex::kernels::testing {
namespace {

TEST(TupleHash, AgreesWithPublishedValues) {
  // The first outputs of splitmix64 for the seed 1234567, as its authors' reference prints them.
  EXPECT_EQ(splitmix64(1234567), 6457827717110365317u);
  EXPECT_EQ(splitmix64(1234567 + kGoldenGamma), 3203168211198807973u);
  EXPECT_EQ(fmix32(0), 0u);
  EXPECT_EQ(fmix32(1), 0x514E28B7u);
}

// What other implementations of the hash can be checked against.
TEST(TupleHash, KeysOfTuplesAreFixed) {
  EXPECT_EQ(hash_row(0, 0, 0), static_cast<uint32_t>(splitmix64(splitmix64(splitmix64(0)))));
  EXPECT_EQ(hash_key(0, 0), static_cast<uint32_t>(splitmix64(kGoldenGamma)));
  EXPECT_EQ(hash_key(1, 5), static_cast<uint32_t>(splitmix64(5 + 2 * kGoldenGamma)));
}

TEST(TupleHash, DropsTheWantedShareOnEveryAxis) {
  constexpr int kSide = 64;
  for (const double p : {0.1, 0.5, 0.9}) {
    const uint32_t threshold = drop_threshold(p);
    int dropped = 0, equal_pairs = 0;
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        bool before = false;
        for (int k = 0; k < kSide; ++k) {
          const uint32_t key = hash_row(7, 3, i) ^ hash_key(0, j) ^ hash_key(1, k);
          const bool drop = !keeps_tuple(key, threshold);
          dropped += drop;
          equal_pairs += k > 0 && drop == before;
          before = drop;
        }
      }
    }
    const double count = std::pow(kSide, 3), pairs = count - kSide * kSide;
    const double equal = p * p + (1 - p) * (1 - p);
    // Five standard deviations of independent draws.
    EXPECT_NEAR(dropped / count, p, 5 * std::sqrt(p * (1 - p) / count));
    EXPECT_NEAR(equal_pairs / pairs, equal, 5 * std::sqrt(equal * (1 - equal) / pairs) + 1e-3);
  }
}

TEST(TupleHash, ThresholdsKeepAllAtZero) {
  EXPECT_EQ(drop_threshold(0.0), 0u);
  EXPECT_TRUE(keeps_tuple(0, drop_threshold(0.0)));
  EXPECT_EQ(drop_threshold(0.5), 0x80000000u);
}

}  // namespace
}  // namespace nsimplex::kernels::testing

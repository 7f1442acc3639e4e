#include "kernels/cpu/shared/matrix_tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace nsimplex::kernels {
namespace {

uint32_t slot(float low, float high) {
  return tile_number(low) | static_cast<uint32_t>(tile_number(high)) << 16;
}

/// Tiles whose every slot is the same.
struct Operands {
  std::vector<uint32_t> a = std::vector<uint32_t>(256), b = std::vector<uint32_t>(256);
  std::vector<float> c = std::vector<float>(256);

  float product(float start) {
    EmulatedTiles tiles;
    std::fill(c.begin(), c.end(), start);
    tiles.load<0>(c.data(), 64);
    tiles.load<4>(a.data(), 64);
    tiles.load<6>(b.data(), 64);
    tiles.multiply<0, 4, 6>();
    tiles.store<0>(c.data(), 64);
    return c[0];
  }
};

TEST(MatrixTiles, NumbersRoundToNearestEvenAndSubnormalOnesToZero) {
  EXPECT_EQ(tile_number(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(tile_number(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(tile_number(-0x1p-127f), 0x8000);
  EXPECT_EQ(tile_number(INFINITY), 0x7f80);
  EXPECT_TRUE(std::isnan(to_accum(Bf16{tile_number(NAN)})));
}

TEST(MatrixTiles, EvenAndOddProductsAreSummedApart) {
  Operands o;
  o.b.assign(256, slot(1.0f, 1.0f));
  // 2^24 + 1 rounds to 2^24. The even sum is 2^24 - 2^24 = 0, and the odd ones survive it.
  o.a[0] = slot(0x1p24f, 1.0f);
  o.a[1] = slot(-0x1p24f, 1.0f);
  EXPECT_EQ(o.product(0.0f), 2.0f);
  // In one sum, pair after pair, the ones would be lost; so they are next to a large start.
  EXPECT_EQ(o.product(0x1p25f), 0x1p25f);
}

TEST(MatrixTiles, MultiplyAddsRoundOnce) {
  Operands o;
  o.b.assign(256, slot(1.0f + 0x1p-7f, 0.0f));
  o.a[0] = slot(-1.0f, 0.0f);
  o.a[1] = slot(1.0f + 0x1p-7f, 0.0f);
  EXPECT_EQ(o.product(0.0f), (1.0f + 0x1p-7f) * 0x1p-7f);
}

TEST(MatrixTiles, SubnormalNumbersCountAsZero) {
  Operands o;
  o.b.assign(256, slot(1.0f, 1.0f));
  o.a.assign(256, 0x00010001u);  // subnormal as bf16
  EXPECT_EQ(o.product(0.0f), 0.0f);
  EXPECT_EQ(o.product(0x1p-130f), 0.0f);
  o.a.assign(256, 0);
  o.a[0] = slot(0x1p-100f, 0.0f);
  o.b.assign(256, slot(0x1p-30f, 0.0f));
  EXPECT_EQ(o.product(0.0f), 0.0f);
  o.b.assign(256, slot(0x1p-26f, 0.0f));
  EXPECT_EQ(o.product(0.0f), 0x1p-126f);
}

/// Slots of random numbers of either operand, with strides beyond the rows.
struct RandomProduct {
  int64_t rows, columns, depth;
  std::vector<float> a, b, c;

  RandomProduct(int64_t rows, int64_t columns, int64_t depth)
      : rows(rows),
        columns(columns),
        depth(depth),
        a(rows * (depth + 5)),
        b(depth * (columns + 3)),
        c(rows * (columns + 7), 0.5f) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    for (std::vector<float>* const operand : {&a, &b}) {
      for (float& x : *operand)
        x = std::bit_cast<float>(slot(normal(generator), normal(generator)));
    }
  }

  std::vector<float> run(TileEngine engine, bool add) const {
    std::vector<float> result = c;
    const TileSession session(engine);
    multiply_tiles(engine, {.c = result.data(),
                            .c_row = columns + 7,
                            .a = a.data(),
                            .a_row = depth + 5,
                            .b = b.data(),
                            .b_row = columns + 3,
                            .rows = rows,
                            .columns = columns,
                            .depth = depth,
                            .add = add});
    return result;
  }

  double exact(int64_t r, int64_t n) const {
    double sum = 0.0;
    for (int64_t k = 0; k < depth; ++k) {
      const uint32_t x = std::bit_cast<uint32_t>(a[r * (depth + 5) + k]);
      const uint32_t y = std::bit_cast<uint32_t>(b[k * (columns + 3) + n]);
      sum += static_cast<double>(std::bit_cast<float>(x << 16)) * std::bit_cast<float>(y << 16);
      sum += static_cast<double>(std::bit_cast<float>(x & 0xffff0000u)) *
             std::bit_cast<float>(y & 0xffff0000u);
    }
    return sum;
  }
};

class TileProducts : public ::testing::TestWithParam<std::array<int64_t, 3>> {};

TEST_P(TileProducts, AreThoseOfMatricesAndTouchNothingElse) {
  const auto [rows, columns, depth] = GetParam();
  const RandomProduct product(rows, columns, depth);
  std::vector<TileEngine> engines{TileEngine::emulated};
  // The plain tiles follow the published order of sums. No processor has confirmed it here, so the
  // instructions are held to the exact product and not to the bits of the plain tiles.
  if (has_amx_bf16()) engines.push_back(TileEngine::hardware);
  for (const TileEngine engine : engines) {
    for (const bool add : {false, true}) {
      const std::vector<float> c = product.run(engine, add);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < columns + 7; ++n) {
          const float got = c[r * (columns + 7) + n];
          if (n >= columns) {
            EXPECT_EQ(got, 0.5f);
          } else {
            EXPECT_NEAR(got, product.exact(r, n) + (add ? 0.5 : 0.0), 2e-5);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TileProducts,
                         ::testing::Values(std::array<int64_t, 3>{16, 16, 16},
                                           std::array<int64_t, 3>{32, 32, 16},
                                           std::array<int64_t, 3>{16, 48, 32},
                                           std::array<int64_t, 3>{48, 16, 32},
                                           std::array<int64_t, 3>{32, 80, 64}));

}  // namespace
}  // namespace nsimplex::kernels

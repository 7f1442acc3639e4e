#include "causal/structure/parent_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "made_tables.h"

namespace nsimplex::causal {
namespace {

TEST(EdgePrice, RatiosAreThoseOfTabulatedFTests) {
  // F with 1 and 18 degrees of freedom is above 4.413873 with a chance of 5 %, with 10 and 100 above
  // 2.503311 with 1 %.
  EXPECT_NEAR(f_test_ratio(18, 1, 0.05), 1 / (1 + 4.413873 / 18), 1e-6);
  EXPECT_NEAR(f_test_ratio(100, 10, 0.01), 1 / (1 + 10 * 2.503311 / 100), 1e-6);
  for (const double free : {1., 2., 30., 5000.}) {
    for (const double level : {0.5, 1e-3, 1e-9}) {
      EXPECT_NEAR(f_test_level(free, 3, f_test_ratio(free, 3, level)) / level, 1, 1e-6);
    }
  }
}

TEST(EdgePrice, IsTwiceThatOfBicWhereRowsAreMany) {
  const EdgePrices prices(1000, 20);
  EXPECT_EQ(prices.most(), 19);
  EXPECT_EQ(prices.of(0), 0);
  for (int64_t parents = 0; parents < 19; ++parents) {
    EXPECT_NEAR(prices.next(parents), 2 * std::log(1000.), 1e-9);
  }
}

TEST(EdgePrice, CostsOfASharedVarianceHaveTheSamePrices) {
  const auto made = test::linear_table(test::random_weights(6, 1), 40, 2);
  const Covariances covariances{covariance_of(made.view())};
  const GaussianCosts costs(covariances), shared = costs.with_shared(2), alone(covariances, 2);
  for (int64_t column = 0; column < 6; ++column) {
    const int64_t other = (column + 1) % 6;
    EXPECT_EQ(shared.of(column, {other}).cost, alone.of(column, {other}).cost);
    EXPECT_NE(shared.of(column, {other}).cost, costs.of(column, {other}).cost);
    EXPECT_EQ(shared.price(column), costs.price(column));
  }
}

TEST(EdgePrice, RisesWithColumnsAndWithParents) {
  double before = EdgePrices(50, 10).next(0);
  for (const int64_t features : {100, 1000, 10'000}) {
    const double price = EdgePrices(50, features).next(0);
    EXPECT_GT(price, before);
    before = price;
  }
  const EdgePrices prices(40, 500);
  EXPECT_EQ(prices.most(), 4);
  EXPECT_GT(prices.next(2), prices.next(1));
  // No variance falls far enough to pay for a parent beyond the limit.
  EXPECT_GT(prices.next(4), 40 * std::log(1e10));
}

}  // namespace
}  // namespace nsimplex::causal

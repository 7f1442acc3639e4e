#include "causal/structure/nonlinear_order.h"

#include <gtest/gtest.h>

#include <cmath>

#include "causal/structure/linear_order.h"
#include "made_tables.h"

namespace nsimplex::causal {
namespace {

// x -> y -> z <- w, of which no linear model sees x -> y and w -> z, and noise beside.
test::MadeTable curved_table(int64_t rows) {
  RandomStream random(2);
  test::MadeTable made{Matrix::Zero(5, 5), Matrix(rows, 5)};
  made.weights(0, 1) = made.weights(1, 2) = made.weights(3, 2) = 1;
  for (int64_t row = 0; row < rows; ++row) {
    const auto noise = [&] { return random.normal(); };
    const double x = noise(), w = noise();
    const double y = 3 * std::cos(2 * x) + noise();
    const double z = std::abs(3 * w) + y + noise();
    made.table.row(row) << x, y, z, w, noise();
  }
  return made;
}

TEST(FitNonlinearOrder, SeesWhatALinearModelDoesNot) {
  const test::MadeTable made = curved_table(3000);
  const Structure found = fit_nonlinear_order(made.view(), {});
  EXPECT_EQ(test::wrong_pairs(found.weights, made.weights), 0);
  EXPECT_GT(test::wrong_pairs(fit_order(made.view(), {}).weights, made.weights), 0);
  const auto edges = made.weights.array() != 0;
  EXPECT_GT(edges.select(found.scores, 1e300).minCoeff(), edges.select(0, found.scores).maxCoeff());
  EXPECT_NEAR(found.weights(1, 2), 1, 0.3);
}

TEST(FitNonlinearOrder, ResultsDependOnTheSeedAlone) {
  const test::MadeTable made = curved_table(200);
  const CausalFitOptions one{.seed = 1}, two{.seed = 2};
  EXPECT_EQ(fit_nonlinear_order(made.view(), one).scores,
            fit_nonlinear_order(made.view(), one).scores);
  EXPECT_NE(fit_nonlinear_order(made.view(), one).scores,
            fit_nonlinear_order(made.view(), two).scores);
}

TEST(FitNonlinearOrder, HoldsToConstraints) {
  const test::MadeTable made = curved_table(300);
  CausalFitOptions options;
  options.constraints.required = {{4, 0}};
  options.constraints.forbidden = {{1, 2}};
  options.constraints.tiers = {1, 0, 0, 1, 1};
  const Structure found = fit_nonlinear_order(made.view(), options);
  EXPECT_NE(found.weights(4, 0), 0);
  EXPECT_EQ(found.weights(1, 2), 0);
  for (const int64_t late : {0, 3, 4}) {
    EXPECT_EQ(found.weights(late, 1), 0);
    EXPECT_EQ(found.weights(late, 2), 0);
  }
}

TEST(FitNonlinearOrder, EndsWhereItsCheckpointThrows) {
  CausalFitOptions options;
  options.checkpoint = [] { throw std::runtime_error("enough"); };
  EXPECT_THROW(fit_nonlinear_order(curved_table(50).view(), options), std::runtime_error);
}

}  // namespace
}  // namespace nsimplex::causal

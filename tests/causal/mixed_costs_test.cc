#include "causal/structure/mixed_costs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "causal/structure/linear_order.h"
#include "made_tables.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

TableView view(const Matrix& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }

int64_t poisson(RandomStream& random, double mean) {
  int64_t count = 0;
  for (double left = mean; (left -= random.exponential()) > 0;) ++count;
  return count;
}

constexpr ColumnKind kKinds[] = {ColumnKind::continuous, ColumnKind::binary, ColumnKind::count,
                                 ColumnKind::category, ColumnKind::continuous};

// x0 -> x1 (two values) -> x2 (a count), x3 (three values, from x0), x4 = x1 + x3's second value.
Matrix mixed_table(int64_t rows, uint64_t seed) {
  RandomStream random(seed);
  Matrix table(rows, 5);
  for (int64_t row = 0; row < rows; ++row) {
    auto x = table.row(row);
    x[0] = random.normal();
    x[1] = random.unit() < 1 / (1 + std::exp(-2 * x[0])) ? 1 : 0;
    // An overdispersed count: a Poisson rate that varies.
    x[2] = static_cast<double>(poisson(
        random, std::exp(0.5 + 1.2 * x[1]) * (random.exponential() + random.exponential()) / 2));
    const double first = std::exp(1.5 * x[0]), second = std::exp(-1.5 * x[0]);
    const double at = random.unit() * (1 + first + second);
    x[3] = at < 1 ? 2 : at < 1 + first ? 5 : 9;
    x[4] = x[1] + (x[3] == 5 ? 1.5 : 0) + random.normal();
  }
  return table;
}

CausalFitOptions options_of() {
  CausalFitOptions options;
  options.kinds = {std::begin(kKinds), std::end(kKinds)};
  return options;
}

TEST(MixedCosts, FindTheCausesOfEveryKind) {
  Matrix truth = Matrix::Zero(5, 5);
  truth(0, 1) = truth(1, 2) = truth(0, 3) = truth(1, 4) = truth(3, 4) = 1;
  int64_t wrong = 0;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const Matrix table = mixed_table(1500, seed);
    const Structure found = fit_order(view(table), options_of());
    EXPECT_EQ(found.model, "mixed");
    wrong += test::wrong_pairs(found.weights, truth);
  }
  EXPECT_LE(wrong, 2);
}

// The logit of two binary columns has the frequencies of the table of four cells.
TEST(MixedCosts, ALogitOfTwoValuesIsTheirTable) {
  Matrix table(100, 2);
  for (int64_t row = 0; row < 100; ++row) {
    table(row, 0) = row < 40 ? 0 : 1;
    table(row, 1) = (row < 40 ? row < 10 : row < 85) ? 7 : 3;
  }
  CausalFitOptions options;
  options.kinds = {ColumnKind::binary, ColumnKind::binary};
  const MixedCosts costs(view(table), options);
  const auto deviance = [](double yes, double no) {
    return -2 * (yes * std::log(yes / (yes + no)) + no * std::log(no / (yes + no)));
  };
  EXPECT_NEAR(costs.of(1, {}).cost, deviance(55, 45), 1e-2);
  Vector without;
  const double cost = costs.of(1, {0}, &without).cost;
  EXPECT_NEAR(cost, deviance(10, 30) + deviance(45, 15) + costs.price(1), 1e-2);
  EXPECT_NEAR(without[0], costs.of(1, {}).cost, 1e-9);
  EXPECT_NEAR(costs.coefficients(1, std::vector<int64_t>{0})[0],
              std::log(45.0 / 15) - std::log(10.0 / 30), 1e-2);
  EXPECT_EQ(costs.better(1, {}), std::vector<int64_t>{0});
}

// Without other kinds the costs are those of linear regressions, but for prices of few rows.
TEST(MixedCosts, ContinuousColumnsAreGaussian) {
  const auto made = test::linear_table(test::random_weights(5, 4), 2000, 5);
  CausalFitOptions options;
  options.kinds.assign(5, ColumnKind::continuous);
  const MixedCosts mixed(made.view(), options);
  const Covariances covariances{covariance_of(made.view())};
  const GaussianCosts linear(covariances);
  const std::vector<int64_t> causes{0, 1, 2};
  EXPECT_NEAR(mixed.of(4, causes).cost, linear.of(4, causes).cost, 0.5);
  EXPECT_EQ(mixed.better(4, {}), linear.better(4, {}));
  EXPECT_LT((mixed.coefficients(4, causes) - linear.coefficients(4, causes)).cwiseAbs().maxCoeff(),
            1e-6);
  EXPECT_LT((mixed.alone() - linear.alone()).cwiseAbs().topRightCorner(4, 1).maxCoeff(), 1e-3);
}

// A Poisson count is the limit of no additional variance: its Newton steps reach the mean.
TEST(MixedCosts, CountsHaveTheirOwnShape) {
  RandomStream random(9);
  Matrix table(3000, 2);
  for (int64_t row = 0; row < 3000; ++row) {
    table(row, 0) = random.normal();
    const double rate = std::exp(1 + 0.5 * table(row, 0));
    table(row, 1) = static_cast<double>(poisson(random, rate));
  }
  CausalFitOptions options;
  options.kinds = {ColumnKind::continuous, ColumnKind::count};
  const MixedCosts costs(view(table), options);
  EXPECT_NEAR(costs.coefficients(1, std::vector<int64_t>{0})[0], 0.5, 0.03);
  EXPECT_LT(costs.of(1, {0}).cost, costs.of(1, {}).cost - 500);
}

TEST(MixedCosts, SeparatedValuesHaveFiniteCosts) {
  Matrix table(60, 2);
  for (int64_t row = 0; row < 60; ++row)
    table.row(row) << static_cast<double>(row), row < 30 ? 0 : 1;
  CausalFitOptions options;
  options.kinds = {ColumnKind::continuous, ColumnKind::binary};
  const MixedCosts costs(view(table), options);
  const ParentSet found = costs.of(1, {0});
  EXPECT_TRUE(std::isfinite(found.cost));
  EXPECT_LT(found.cost, costs.of(1, {}).cost);
  EXPECT_TRUE(costs.coefficients(1, std::vector<int64_t>{0}).allFinite());
}

TEST(MixedCosts, RefuseValuesOfAnotherKind) {
  const Matrix table = mixed_table(50, 1);
  for (const int64_t column : {0, 3}) {
    for (const ColumnKind kind : {ColumnKind::binary, ColumnKind::count, ColumnKind::category}) {
      if (column == 3 && kind != ColumnKind::binary) continue;
      CausalFitOptions options = options_of();
      options.kinds[static_cast<size_t>(column)] = kind;
      EXPECT_THROW(MixedCosts(view(table), options), InputError);
    }
  }
  CausalFitOptions options = options_of();
  options.kinds.pop_back();
  EXPECT_THROW(MixedCosts(view(table), options), InputError);
}

}  // namespace
}  // namespace nsimplex::causal

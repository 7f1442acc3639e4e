#include "causal/structure/additive_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "causal/structure/parent_search.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

// x, w, y = sin(2 x) + noise, z = |w| + y^2 / 2 + noise, and noise alone, all at other scales.
Matrix additive_table(int64_t rows, uint64_t seed) {
  RandomStream random(seed);
  Matrix table(rows, 5);
  for (int64_t row = 0; row < rows; ++row) {
    const double x = random.normal(), w = random.normal();
    const double y = std::sin(2 * x) + 0.5 * random.normal();
    table.row(row) << 10 * x, y, std::abs(w) + y * y / 2 + 0.2 * random.normal(), w / 100,
        random.normal();
  }
  return table;
}

TableView view_of_table(const Matrix& table) { return {table.data(), table.rows(), table.cols()}; }

ParentLists found_parents(const Matrix& table, const EdgeConstraints& known = {}) {
  AdditiveRegression regression(view_of_table(table));
  const AllowedEdges edges(known, table.cols());
  return additive_graph(regression, edges, table.rows(), {});
}

TEST(AdditiveRegression, LeavesTheNoiseOfASum) {
  const Matrix table = additive_table(4000, 1);
  AdditiveRegression regression(view_of_table(table));
  const CrossValidation rows(4000, 2);
  // The variance of z is that of |w|, 1 - 2 / pi, of y^2 / 2, and 0.04.
  const Vector z = table.col(2);
  const double variance = (z.array() - z.mean()).square().mean();
  EXPECT_NEAR(regression.unexplained(2, {1, 3}) * variance, 0.04, 0.005);
  EXPECT_NEAR(regression.unexplained_held_out(2, {1, 3}, rows) * variance, 0.04, 0.006);
  EXPECT_GT(regression.unexplained_held_out(4, {0, 1, 2, 3}, rows), 1);
  EXPECT_EQ(regression.unexplained(4, {}), 1);
  const Matrix alone = regression.unexplained_by_one();
  EXPECT_NEAR(alone(0, 1), regression.unexplained(1, {0}), 1e-7);
  EXPECT_NEAR(alone(3, 2), regression.unexplained(2, {3}), 1e-7);
}

TEST(AdditiveRegression, TakesCopiesAndFewValues) {
  Matrix table = additive_table(100, 1);
  table.col(1) = table.col(0);
  table.col(3) = (table.col(4).array() > 0).cast<double>();
  AdditiveRegression regression(view_of_table(table));
  EXPECT_EQ(regression.parameters(3), 1);
  EXPECT_NEAR(regression.unexplained(2, {0, 1}), regression.unexplained(2, {0}), 1e-6);
}

TEST(AdditiveGraph, FindsCausesWhateverTheScales) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const ParentLists parents = found_parents(additive_table(1000, seed));
    EXPECT_EQ(parents, (ParentLists{{}, {0}, {1, 3}, {}, {}}));
  }
}

TEST(AdditiveGraph, KeepsToConstraints) {
  const Matrix table = additive_table(600, 4);
  EdgeConstraints known;
  known.required = {{4, 0}};
  known.forbidden = {{1, 2}};
  known.tiers = {1, 0, 0, 1, 1};
  const ParentLists parents = found_parents(table, known);
  EXPECT_EQ(std::ranges::count(parents[0], 4), 1);
  for (const size_t early : {1u, 2u}) {
    for (const int64_t cause : parents[early]) EXPECT_TRUE(cause == 1 || cause == 2);
  }
  EXPECT_EQ(std::ranges::count(parents[2], 1), 0);
}

TEST(AdditiveGraph, HasNoEdgesAmongIndependentColumns) {
  size_t edges = 0;
  for (const uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    RandomStream random(seed);
    const Matrix table = Matrix::NullaryExpr(300, 20, [&] { return random.normal(); });
    for (const auto& each : found_parents(table)) edges += each.size();
  }
  EXPECT_LE(edges, 2);
}

TEST(AdditiveGraph, TakesFewRows) {
  for (const int64_t rows : {2, 3, 6, 12}) found_parents(additive_table(rows, 1));
}

}  // namespace
}  // namespace nsimplex::causal

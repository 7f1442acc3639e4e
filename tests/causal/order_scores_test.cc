#include "causal/structure/linear_order.h"

#include <gtest/gtest.h>

#include <cmath>

#include "made_tables.h"

namespace nsimplex::causal {
namespace {

constexpr double kRows = 500;
const double kPrice = 2 * std::log(kRows);  // that of an edge where rows are many

// The scores of the graph that an order gives on the table of these weights.
Matrix scores_of(const Matrix& weights, const Order& order, const EdgeConstraints& known = {}) {
  const auto made = test::linear_table(weights, static_cast<int64_t>(kRows), 3);
  const Covariances covariances{covariance_of(made.view())};
  const GaussianCosts costs(covariances);
  const AllowedEdges edges(known, weights.rows());
  ParentSearch search(costs, edges);
  return order_scores(costs, edges, graph_of_order(search, order).parents);
}

Matrix two_columns() {
  Matrix weights = Matrix::Zero(2, 2);
  weights(0, 1) = 0.7;
  return weights;
}

TEST(OrderScores, AnEdgeThatMayPointEitherWayIsHalfOfEach) {
  const Matrix scores = scores_of(two_columns(), {0, 1});
  const auto made = test::linear_table(two_columns(), static_cast<int64_t>(kRows), 3);
  const Matrix c = covariance_of(made.view()).matrix;
  const double gain = -kRows * std::log(1 - c(0, 1) * c(0, 1) / (c(0, 0) * c(1, 1))) - kPrice;
  // Each is all that any column says about the other.
  EXPECT_NEAR(scores(0, 1), gain / 2 + kPrice, 1e-9);
  EXPECT_NEAR(scores(1, 0), gain / 2 + kPrice, 1e-9);
  EXPECT_EQ(scores(0, 0), 0);
}

TEST(OrderScores, AnEdgeThatMayNotTurnHasAll) {
  const Matrix either = scores_of(two_columns(), {0, 1});
  const Matrix forbidden = scores_of(two_columns(), {0, 1}, {.forbidden = {{1, 0}}});
  EXPECT_NEAR(forbidden(0, 1), 2 * either(0, 1) - kPrice, 1e-9);
  EXPECT_EQ(forbidden(1, 0), 0);
  const Matrix required = scores_of(two_columns(), {0, 1}, {.required = {{0, 1}}});
  EXPECT_NEAR(required(0, 1), forbidden(0, 1), 1e-9);
  EXPECT_NEAR(required(1, 0), kPrice, 1e-9);
}

TEST(OrderScores, CollidersAndPathsFixDirections) {
  Matrix weights = Matrix::Zero(4, 4);
  weights(0, 2) = weights(1, 2) = 1;  // a collider
  weights(2, 3) = 1;                  // turned, it would be another
  const Matrix scores = scores_of(weights, {0, 1, 2, 3});
  for (const CausalEdge& edge : {CausalEdge{0, 2}, {1, 2}, {2, 3}}) {
    EXPECT_GT(scores(edge.cause, edge.effect), 20);
    EXPECT_LT(scores(edge.effect, edge.cause), kPrice);
  }
  // The turned edge 2 -> 0 of a triangle would close a cycle.
  Matrix triangle = Matrix::Zero(3, 3);
  triangle(0, 1) = triangle(1, 2) = triangle(0, 2) = 1;
  const Matrix closed = scores_of(triangle, {0, 1, 2});
  EXPECT_GT(closed(0, 2), 20);
  EXPECT_LT(closed(2, 0), kPrice);
  EXPECT_GT(closed(1, 0), 20);
}

}  // namespace
}  // namespace nsimplex::causal

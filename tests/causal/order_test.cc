#include "causal/structure/linear_order.h"

#include <gtest/gtest.h>

#include "causal/structure/order_search.h"
#include "made_tables.h"

namespace nsimplex::causal {
namespace {

using test::linear_table;
using test::MadeTable;
using test::random_weights;
using test::wrong_pairs;

// x_j for every j at another scale, which nobody who sees the table knows.
MadeTable rescaled(MadeTable made) {
  for (int64_t column = 0; column < made.table.cols(); ++column) {
    const double scale = std::sqrt(made.table.col(column).squaredNorm());
    made.table.col(column) /= scale;
  }
  return made;
}

TEST(FitOrder, FindsTheGraphOfEqualVariances) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const MadeTable made = linear_table(random_weights(12, seed), 1000, seed + 100);
    const Structure found = fit_order(made.view(), {});
    EXPECT_EQ(found.model, "equal variances");
    EXPECT_EQ(wrong_pairs(found.weights, made.weights), 0);
    EXPECT_LT((found.weights - made.weights).cwiseAbs().maxCoeff(), 0.2);
    // Every edge has a higher score than any other pair.
    const auto edges = made.weights.array() != 0;
    EXPECT_GT(edges.select(found.scores, 1e300).minCoeff(),
              edges.select(0, found.scores).maxCoeff());
  }
}

TEST(FitOrder, FindsTheClassOfAGraphOfUnknownScales) {
  // Two colliders: no other graph has their independences.
  Matrix weights = Matrix::Zero(5, 5);
  weights(0, 2) = weights(1, 2) = 1.2;
  weights(2, 4) = 0.9;
  weights(3, 4) = -1.5;
  const MadeTable made = rescaled(linear_table(weights, 2000, 7));
  const Structure found = fit_order(made.view(), {});
  EXPECT_EQ(found.model, "free variances");
  EXPECT_EQ(wrong_pairs(found.weights, weights), 0);
}

TEST(FitOrder, FindsNothingInNoiseOfFewRows) {
  int64_t edges = 0;
  for (const uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    for (const MadeTable& each : {linear_table(Matrix::Zero(60, 60), 20, seed),
                                  rescaled(linear_table(Matrix::Zero(60, 60), 20, seed))}) {
      edges += (fit_order(each.view(), {}).weights.array() != 0).count();
    }
  }
  EXPECT_LE(edges, 10);
}

TEST(FitOrder, FindsTheGraphOfEqualVariancesInFewRows) {
  const MadeTable made = linear_table(random_weights(150, 3), 250, 4);
  const Structure found = fit_order(made.view(), {});
  EXPECT_EQ(found.model, "equal variances");
  // 300 edges; without the directions of the noises a tenth of them points the wrong way.
  EXPECT_LE(wrong_pairs(found.weights, made.weights), 60);
}

TEST(FitOrder, ResultsDependOnTheSeedAlone) {
  const MadeTable made = rescaled(linear_table(random_weights(15, 4), 300, 5));
  const Structure first = fit_order(made.view(), {}), second = fit_order(made.view(), {});
  EXPECT_EQ(first.weights, second.weights);
  EXPECT_EQ(first.scores, second.scores);
}

TEST(FitOrder, HoldsToConstraints) {
  const MadeTable made = linear_table(random_weights(10, 9), 500, 10);
  for (const MadeTable& each : {made, rescaled(made)}) {
    // Against the truth throughout: the graph that comes out must obey all the same.
    CausalFitOptions options;
    options.constraints.required = {{9, 0}, {3, 1}};
    options.constraints.forbidden = {{0, 1}, {1, 0}, {8, 5}};
    options.constraints.tiers = {1, 1, 1, 0, 0, 0, 0, 0, 1, 0};
    const Structure found = fit_order(each.view(), options);
    EXPECT_NE(found.weights(9, 0), 0);
    EXPECT_NE(found.weights(3, 1), 0);
    EXPECT_EQ(found.weights(0, 1), 0);
    EXPECT_EQ(found.weights(1, 0), 0);
    const std::vector<int64_t>& tiers = options.constraints.tiers;
    for (size_t cause = 0; cause < tiers.size(); ++cause) {
      for (size_t effect = 0; effect < tiers.size(); ++effect) {
        if (tiers[cause] <= tiers[effect]) continue;
        EXPECT_EQ(found.weights(static_cast<int64_t>(cause), static_cast<int64_t>(effect)), 0);
      }
    }
  }
}

TEST(FitOrder, TakesColumnsThatOthersDetermine) {
  MadeTable made = linear_table(random_weights(8, 11), 200, 12);
  made.table.col(7) = made.table.col(2);                          // a copy
  made.table.col(6) = made.table.col(0) - 2 * made.table.col(1);  // a combination
  const Structure found = fit_order(made.view(), {});
  EXPECT_TRUE(found.weights.allFinite());
  EXPECT_TRUE(found.scores.allFinite());
  EXPECT_TRUE(found.weights(7, 2) != 0 || found.weights(2, 7) != 0);
}

TEST(FitOrder, TakesFewerRowsThanColumns) {
  const MadeTable made = linear_table(random_weights(30, 13), 20, 14);
  const Structure found = fit_order(made.view(), {});
  EXPECT_TRUE(found.weights.allFinite());
  EXPECT_TRUE(found.scores.allFinite());
}

TEST(FitOrder, EndsWhereItsCheckpointThrows) {
  const MadeTable made = linear_table(random_weights(6, 15), 100, 16);
  CausalFitOptions options;
  options.checkpoint = [] { throw std::runtime_error("enough"); };
  EXPECT_THROW(fit_order(made.view(), options), std::runtime_error);
}

TEST(ImproveOrder, NoMoveOfOneColumnLowersTheCostOfWhatItReturns) {
  const MadeTable made = linear_table(random_weights(9, 17), 400, 18);
  const Covariance covariance = covariance_of(made.view());
  const AllowedEdges edges({}, 9);
  ParentSearch search(covariance, edges, {EdgePrices(400, 9)});
  Order order{8, 3, 1, 0, 5, 7, 2, 6, 4};
  const double before = graph_of_order(search, order).cost;
  const OrderedGraph found = improve_order(search, Precedence({}, 9), order, {});
  EXPECT_LT(found.cost, before);
  for (size_t from = 0; from < 9; ++from) {
    for (size_t to = 0; to < 9; ++to) {
      Order moved = found.order;
      moved.erase(moved.begin() + static_cast<int64_t>(from));
      moved.insert(moved.begin() + static_cast<int64_t>(to), found.order[from]);
      EXPECT_GE(graph_of_order(search, moved).cost, found.cost - 1e-6);
    }
  }
}

}  // namespace
}  // namespace nsimplex::causal

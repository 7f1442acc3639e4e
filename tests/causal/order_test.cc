#include "causal/structure/linear_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "causal/graph/acyclic.h"
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

TEST(FitOrder, KeepsTheBestGraphSoFarWhenItIsStopped) {
  const MadeTable made = rescaled(linear_table(random_weights(12, 15), 300, 16));
  const Structure whole = fit_order(made.view(), {});
  int64_t asked = 0;
  const auto stopped_after = [&](int64_t steps) {
    CausalFitOptions options;
    asked = 0;
    options.stop = [&asked, steps] { return asked++ >= steps; };
    return fit_order(made.view(), options);
  };
  // At once: the order of equal variances. At the end: the same graph as without stop.
  const Structure none = stopped_after(0);
  EXPECT_GT(wrong_pairs(none.weights, whole.weights), 0);
  EXPECT_LT(asked, 10);
  const Structure all = stopped_after(1'000'000);
  EXPECT_EQ(all.weights, whole.weights);
  const int64_t steps = asked;
  for (const int64_t part : {2, 4, 8}) {
    const Structure some = stopped_after(steps / part);
    Matrix graph = some.weights;
    EXPECT_TRUE(repair_cycles(graph, AllowedEdges({}, 12)).empty());
    EXPECT_LT(asked, steps / part + 10);
  }
  const MadeTable wide = linear_table(random_weights(30, 13), 20, 14);
  CausalFitOptions now;
  now.stop = [] { return true; };
  now.constraints.tiers.assign(30, 1);
  now.constraints.tiers[7] = 0;
  const Structure first = fit_order(wide.view(), now);
  EXPECT_TRUE(first.weights.col(7).isZero());
}

TEST(ImproveOrder, NoMoveOfOneColumnLowersTheCostOfWhatItReturns) {
  const MadeTable made = linear_table(random_weights(9, 17), 400, 18);
  const AllowedEdges edges({}, 9);
  const Covariances covariances{covariance_of(made.view())};
  const GaussianCosts costs(covariances);
  ParentSearch search(costs, edges);
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

// What improve_order() does, without any result kept: every place of every column is tried, and the
// parents of all columns are found anew.
Order moved_naively(ParentSearch& search, const Precedence& precedence, Order order) {
  const auto cost_with = [&](Order rest, size_t place, int64_t column) {
    rest.insert(rest.begin() + static_cast<int64_t>(place), column);
    return graph_of_order(search, rest).cost;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const int64_t column : Order(order)) {
      const auto place = static_cast<size_t>(std::ranges::find(order, column) - order.begin());
      Order rest = order;
      std::erase(rest, column);
      size_t best = place;
      for (size_t k = 0; k <= rest.size(); ++k) {
        bool allowed = true;
        for (size_t other = 0; other < rest.size(); ++other) {
          allowed = allowed && !(other < k ? precedence.before(column, rest[other])
                                           : precedence.before(rest[other], column));
        }
        if (allowed && is_less(cost_with(rest, k, column), cost_with(rest, best, column))) best = k;
      }
      rest.insert(rest.begin() + static_cast<int64_t>(best), column);
      moved = moved || best != place;
      order = rest;
    }
  }
  return order;
}

TEST(ImproveOrder, MovesAsIfEveryColumnWereAskedAgain) {
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    const MadeTable made =
        rescaled(linear_table(random_weights(14, seed), seed % 2 == 0 ? 40 : 500, seed + 7));
    CausalFitOptions options;
    if (seed > 2) options.constraints.tiers = {0, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 3, 1};
    const Covariances covariances{covariance_of(made.view())};
    const AllowedEdges edges(options.constraints, 14);
    const Precedence precedence(options.constraints, 14);
    const GaussianCosts costs(covariances);
    ParentSearch search(costs, edges), other(costs, edges);
    Order order(14);
    for (int64_t k = 0; k < 14; ++k) order[static_cast<size_t>(k)] = k;
    if (seed <= 2) std::ranges::reverse(order);
    if (seed > 2) order = {0, 11, 10, 9, 8, 7, 6, 4, 3, 2, 1, 13, 5, 12};
    EXPECT_EQ(improve_order(search, precedence, order, {}).order,
              moved_naively(other, precedence, order));
  }
}

TEST(SelectedVarianceOrder, PlacesTheColumnOfLeastVarianceAmongAll) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const MadeTable made = linear_table(random_weights(30, seed), 40, seed);
    const Covariances covariances{covariance_of(made.view())};
    const AllowedEdges edges({}, 30);
    const Precedence precedence({}, 30);
    const GaussianCosts costs(covariances);
    ParentSearch search(costs, edges), other(costs, edges);
    Order expected;
    std::vector<int64_t> place(30, 30);
    while (expected.size() < 30) {
      int64_t next = -1;
      double least = 0;
      for (int64_t column = 0; column < 30; ++column) {
        if (place[static_cast<size_t>(column)] < 30) continue;
        const double variance = other.best(column, place, std::ssize(expected)).variance;
        if (next >= 0 && !is_less(variance, least)) continue;
        next = column;
        least = variance;
      }
      place[static_cast<size_t>(next)] = std::ssize(expected);
      expected.push_back(next);
    }
    EXPECT_EQ(selected_variance_order(search, precedence, {}), expected);
  }
}

TEST(ExplainedParts, AreTheShareThatAllOthersExplain) {
  // More columns than a block of the triangular inverse.
  const MadeTable made = linear_table(random_weights(150, 5), 600, 6);
  const Matrix covariance = covariance_of(made.view()).matrix;
  const Vector explained = explained_parts(covariance);
  for (const int64_t column : {0, 1, 63, 64, 75, 149}) {
    std::vector<int64_t> others;
    for (int64_t other = 0; other < 150; ++other) {
      if (other != column) others.push_back(other);
    }
    const double left = regress(covariance, column, others).variance;
    // The ridge of the correlations changes it a little.
    EXPECT_NEAR(explained[column], 1 - left / covariance(column, column), 1e-3);
  }
}

}  // namespace
}  // namespace nsimplex::causal

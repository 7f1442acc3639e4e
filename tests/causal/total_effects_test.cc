// Total effects, adjustment sets, members of graphs of open direction, and tests of graphs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "causal/effects/graph_tests.h"
#include "causal/effects/total_effects.h"
#include "causal/graph/acyclic.h"
#include "causal/graph/partial_graph.h"
#include "input_error_of.h"

namespace nsimplex::causal {
namespace {

using nsimplex::test::input_error_of;
using testing::ElementsAre;
using testing::IsEmpty;

Matrix graph_with(int64_t features, const std::vector<CausalEdge>& edges) {
  Matrix graph = Matrix::Zero(features, features);
  for (const CausalEdge& edge : edges) graph(edge.cause, edge.effect) = 1;
  return graph;
}

// The covariance of a linear model whose noises have variance 1: B^T B with B = (I - A)^-1.
Covariance covariance_of_model(const Matrix& weights, int64_t rows) {
  const Matrix unit = Matrix::Identity(weights.rows(), weights.rows());
  const Matrix effects = (unit - weights).inverse();
  return {effects.transpose() * effects, rows};
}

TEST(TotalEffect, IsTheSumOverPathsWithTheOptimalAdjustment) {
  // 0 -> 1 -> 3, 0 -> 3, 2 -> 1, 4 -> 3, 5 -> 0: the best set has 2 and 4, and not 5.
  Matrix weights = graph_with(6, {});
  weights(0, 1) = 2;
  weights(1, 3) = -0.5;
  weights(0, 3) = 0.25;
  weights(2, 1) = 1;
  weights(4, 3) = 3;
  weights(5, 0) = 1;
  const Covariance covariance = covariance_of_model(weights, 100);
  const TotalEffect found = total_effect(covariance, weights, 0, 3);
  EXPECT_TRUE(found.path);
  EXPECT_THAT(found.adjustment, ElementsAre(2, 4));
  EXPECT_NEAR(found.estimate.value, 2 * -0.5 + 0.25, 1e-12);
  EXPECT_EQ(found.estimate.free, 100 - 1 - 3);
  // The noise of the regression is e_3 - 0.5 e_1, and 0 varies by 2 given 2 and 4.
  EXPECT_NEAR(found.estimate.error, std::sqrt(1.25 / (96 * 2.0)), 1e-12);

  const TotalEffect none = total_effect(covariance, weights, 3, 0);
  EXPECT_FALSE(none.path);
  EXPECT_THAT(none.adjustment, IsEmpty());
  EXPECT_EQ(interval_of(none.estimate, 0.95), std::pair(0.0, 0.0));
}

TEST(TotalEffect, AConfounderIsAdjustedFor) {
  Matrix weights = graph_with(3, {});
  weights(0, 1) = 1;
  weights(0, 2) = 1;
  weights(1, 2) = 0.5;
  const TotalEffect found = total_effect(covariance_of_model(weights, 50), weights, 1, 2);
  EXPECT_THAT(found.adjustment, ElementsAre(0));
  EXPECT_NEAR(found.estimate.value, 0.5, 1e-12);
}

TEST(TotalEffect, IntervalsAreThoseOfStudent) {
  // The table of t: 2.228139 with 10 degrees of freedom at 95 %, 3.169273 at 99 %.
  const auto [low, high] = interval_of(Estimate{1, 0.5, 10}, 0.95);
  EXPECT_NEAR(high, 1 + 0.5 * 2.228139, 1e-6);
  EXPECT_NEAR(low, 1 - 0.5 * 2.228139, 1e-6);
  EXPECT_NEAR(interval_of(Estimate{0, 1, 10}, 0.99).second, 3.169273, 1e-6);
  EXPECT_NEAR(p_value_of({2.228139, 1, 10}), 0.05, 1e-6);
}

TEST(TotalEffect, AMixtureOfEqualEstimatesIsOneOfThem) {
  const Estimate one{1, 0.5, 10};
  const std::vector<Estimate> same{one, one, one};
  EXPECT_NEAR(interval_of(same, 0.95).first, interval_of(one, 0.95).first, 1e-9);
  EXPECT_NEAR(interval_of(same, 0.95).second, interval_of(one, 0.95).second, 1e-9);
  // A tenth of the graphs has no path: its zero lies inside.
  std::vector<Estimate> mixed(9, Estimate{5, 0.1, 100});
  mixed.push_back({});
  EXPECT_NEAR(interval_of(mixed, 0.95).first, 0, 1e-9);
  EXPECT_GT(interval_of(mixed, 0.95).second, 5);
}

TEST(TotalEffect, ACauseThatOthersDetermineHasNoEstimate) {
  Matrix weights = graph_with(3, {{0, 1}, {0, 2}, {1, 2}});
  Covariance covariance{Matrix::Ones(3, 3), 20};
  covariance.matrix(2, 2) = 2;
  const auto [low, high] = interval_of(total_effect(covariance, weights, 1, 2).estimate, 0.95);
  EXPECT_TRUE(std::isinf(low) && std::isinf(high));
  covariance.observations = 3;
  EXPECT_EQ(input_error_of([&] { total_effect(covariance, weights, 1, 2); }),
            "table: expected at least 4 rows for a regression on 2 columns, got 3");
}

TEST(PartialGraph, MembersHaveEverySetOfCauses) {
  // 0 - 1 - 2: three members, and 1 may not have both as causes.
  const PartialGraph chain(graph_with(3, {{0, 1}, {1, 0}, {1, 2}, {2, 1}}));
  EXPECT_TRUE(chain.is_open());
  std::vector<std::vector<int64_t>> causes;
  for (const Matrix& member : chain.members_by_causes(1, 10)) {
    EXPECT_TRUE(causal_order(member).has_value());
    causes.push_back(causes_of(member)[1]);
  }
  EXPECT_THAT(causes, ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(2)));
  EXPECT_EQ(chain.members_by_causes(0, 10).size(), 2u);
  EXPECT_EQ(input_error_of([&] { chain.members_by_causes(1, 2); }),
            "graph: expected at most 2 sets of causes that column 1 may have, got more");
}

TEST(PartialGraph, MembersKeepCollidersAndArrows) {
  // 0 -> 2 <- 1, 2 -> 3 and 4 - 0.
  const Matrix given = graph_with(5, {{0, 2}, {1, 2}, {2, 3}, {4, 0}, {0, 4}});
  const PartialGraph graph(given);
  const std::vector<Matrix> members = graph.members_by_causes(4, 10);
  ASSERT_EQ(members.size(), 2u);
  for (const Matrix& member : members) {
    EXPECT_EQ(member(0, 2) + member(1, 2) + member(2, 3), 3);
    EXPECT_EQ(member(4, 0) + member(0, 4), 1);
  }
  const PartialGraph cycle(graph_with(3, {{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_FALSE(cycle.member().has_value());
  EXPECT_EQ(input_error_of([&] { cycle.members_by_causes(0, 10); }),
            "graph: expected directions that an acyclic graph can have");
}

TEST(TestedGraph, HasATestOfEveryPair) {
  Matrix weights = graph_with(3, {});
  weights(0, 1) = 1;
  weights(1, 2) = 1;
  const Covariance covariance = covariance_of_model(weights, 1000);
  const TestedGraph right = tested_graph(covariance, weights);
  ASSERT_EQ(right.edges.size(), 2u);
  ASSERT_EQ(right.independences.size(), 1u);
  EXPECT_THAT(right.independences[0].given, ElementsAre(1));
  EXPECT_NEAR(right.independences[0].correlation, 0, 1e-9);
  EXPECT_GT(right.independences[0].p_value, 0.999);
  // Without 1 -> 2, the pair is dependent: the correlation is sqrt(2 / 3).
  const TestedGraph wrong = tested_graph(covariance, graph_with(3, {{0, 1}}));
  ASSERT_EQ(wrong.independences.size(), 2u);
  EXPECT_NEAR(wrong.independences[1].correlation, std::sqrt(2.0 / 3), 1e-9);
  EXPECT_LT(wrong.independences[1].p_value, 1e-10);
  EXPECT_GT(wrong.bic, right.bic);
}

TEST(TestedGraph, HolmsPValuesRise) {
  const auto of = [](double p) { return TestedPair{0, 1, {}, 0, p}; };
  const std::vector<TestedPair> tests{of(0.04), of(0.01), of(0.03), of(0.5)};
  EXPECT_THAT(holm_adjusted(tests), ElementsAre(testing::DoubleEq(0.09), testing::DoubleEq(0.04),
                                                testing::DoubleEq(0.09), testing::DoubleEq(0.5)));
}

TEST(PathBetween, IsAShortestOne) {
  const Matrix graph = graph_with(4, {{0, 1}, {1, 2}, {2, 3}, {0, 2}});
  const std::vector<CausalEdge> path = path_between(graph, 0, 3);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(path[0], (CausalEdge{2, 3}));
  EXPECT_EQ(path[1], (CausalEdge{0, 2}));
  EXPECT_THAT(path_between(graph, 3, 0), IsEmpty());
}

}  // namespace
}  // namespace nsimplex::causal

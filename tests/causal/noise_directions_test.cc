#include "causal/structure/noise_directions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "causal/graph/acyclic.h"
#include "made_tables.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

const std::function<bool()> kGoOn = [] { return true; };

// x_0 -> x_1 -> x_2 with exponential noises.
Matrix skewed_chain(int64_t rows, uint64_t seed) {
  RandomStream random(seed);
  Matrix table(rows, 3);
  for (int64_t row = 0; row < rows; ++row) {
    table(row, 0) = random.exponential();
    table(row, 1) = 1.2 * table(row, 0) + random.exponential();
    table(row, 2) = -0.8 * table(row, 1) + random.exponential();
  }
  return table;
}

Matrix graph_of(int64_t columns, const std::vector<CausalEdge>& edges) {
  Matrix graph = Matrix::Zero(columns, columns);
  for (const CausalEdge& edge : edges) graph(edge.cause, edge.effect) = 1;
  return graph;
}

std::vector<CausalEdge> edges_of(const Matrix& graph) {
  std::vector<CausalEdge> edges;
  for (int64_t i = 0; i < graph.rows(); ++i) {
    for (int64_t j = 0; j < graph.cols(); ++j) {
      if (graph(i, j) != 0) edges.push_back({i, j});
    }
  }
  return edges;
}

TurnedGraph turned(const Matrix& table, const Matrix& graph,
                   const EdgeConstraints& constraints = {},
                   const std::function<bool()>& go_on = kGoOn) {
  return turned_by_noise({table.data(), table.rows(), table.cols()},
                         {graph.data(), graph.rows(), graph.cols()}, 0.01, constraints, go_on);
}

using testing::ElementsAre;

TEST(TurnedByNoise, TurnsAChainThatStandsBackwards) {
  const TurnedGraph found = turned(skewed_chain(1000, 1), graph_of(3, {{2, 1}, {1, 0}}));
  EXPECT_THAT(found.turned, ElementsAre(CausalEdge{0, 1}, CausalEdge{1, 2}));
  EXPECT_EQ(edges_of(found.adjacency), found.turned);
  EXPECT_NEAR(found.adjacency(0, 1), 1.2, 0.1);
  EXPECT_NEAR(found.adjacency(1, 2), -0.8, 0.1);
  EXPECT_LT(found.p_value, 1e-6);
  EXPECT_GT(found.gain, 100);
  EXPECT_FALSE(found.interrupted);
}

TEST(TurnedByNoise, GaussianNoiseTurnsNothing) {
  Matrix weights = Matrix::Zero(3, 3);
  weights(0, 1) = 1.2;
  weights(1, 2) = -0.8;
  const auto made = test::linear_table(weights, 1000, 1);
  const TurnedGraph found = turned(made.table, graph_of(3, {{2, 1}, {1, 0}}));
  EXPECT_THAT(edges_of(found.adjacency), ElementsAre(CausalEdge{1, 0}, CausalEdge{2, 1}));
  EXPECT_TRUE(found.turned.empty());
  EXPECT_EQ(found.gain, 0);
  EXPECT_GT(found.p_value, 0.01);
}

// The chain's true edges are each excluded in turn.
TEST(TurnedByNoise, RespectsConstraints) {
  const Matrix table = skewed_chain(1000, 2), backwards = graph_of(3, {{2, 1}, {1, 0}});
  const std::vector<EdgeConstraints> without_first = {
      {.forbidden = {{0, 1}}}, {.required = {{1, 0}}}, {.tiers = {1, 0, 0}}};
  for (const EdgeConstraints& constraints : without_first) {
    const TurnedGraph found = turned(table, backwards, constraints);
    EXPECT_EQ(found.adjacency(0, 1), 0);
    EXPECT_TRUE(causal_order(found.adjacency));
    for (const CausalEdge& edge : constraints.required) {
      EXPECT_NE(found.adjacency(edge.cause, edge.effect), 0);
    }
    if (!constraints.tiers.empty()) {
      EXPECT_EQ(found.adjacency(0, 2), 0);
    }
  }
}

TEST(TurnedByNoise, RandomConstraintsHoldInEveryResult) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed);
    const Matrix weights = test::random_weights(8, seed);
    Matrix table(200, 8);
    for (int64_t row = 0; row < 200; ++row) {
      for (int64_t column = 0; column < 8; ++column) {
        table(row, column) = table.row(row).head(column).dot(weights.col(column).head(column)) +
                             random.exponential();
      }
    }
    // The given graph has all edges turned, so that most of it is wrong.
    const Matrix given = weights.transpose();
    EdgeConstraints constraints;
    for (const CausalEdge& edge : edges_of(weights)) {
      if (random.below(4) == 0) constraints.forbidden.push_back(edge);
      if (random.below(6) == 0) constraints.required.push_back({edge.effect, edge.cause});
    }
    const TurnedGraph found = turned(table, given, constraints);
    EXPECT_TRUE(causal_order(found.adjacency));
    for (const CausalEdge& edge : constraints.forbidden) {
      EXPECT_EQ(found.adjacency(edge.cause, edge.effect), 0);
    }
    for (const CausalEdge& edge : constraints.required) {
      EXPECT_NE(found.adjacency(edge.cause, edge.effect), 0);
    }
    EXPECT_GE(found.gain, 0);
  }
}

TEST(TurnedByNoise, EndsWithTheGraphSoFar) {
  const Matrix table = skewed_chain(1000, 3), backwards = graph_of(3, {{2, 1}, {1, 0}});
  const double whole = turned(table, backwards).gain;
  double before = -1;
  for (const int allowed : {0, 2, 100}) {
    int asked = 0;
    const TurnedGraph found = turned(table, backwards, {}, [&] { return asked++ < allowed; });
    EXPECT_EQ(found.interrupted, allowed < 100);
    EXPECT_TRUE(causal_order(found.adjacency));
    EXPECT_GE(found.gain, before);
    before = found.gain;
  }
  EXPECT_EQ(before, whole);
}

TEST(TurnedByNoise, NamesWhatCannotBe) {
  const Matrix table = skewed_chain(20, 4);
  const auto why = [&](const Matrix& graph, const EdgeConstraints& constraints) -> std::string {
    try {
      turned(table, graph, constraints);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why(graph_of(2, {}), {}),
            "graph: expected [M, M] for a table [n, M], got [2, 2] and [20, 3]");
  EXPECT_EQ(why(graph_of(3, {{0, 1}, {1, 0}}), {}), "graph: expected no cycle");
  EXPECT_EQ(why(graph_of(3, {{0, 1}}), {.forbidden = {{0, 1}}}),
            "graph: expected no forbidden edge, got 0 -> 1");
  EXPECT_EQ(why(graph_of(3, {{0, 1}}), {.tiers = {1, 0, 0}}),
            "graph: expected no forbidden edge, got 0 -> 1");
  EXPECT_EQ(why(graph_of(3, {}), {.required = {{0, 1}}}),
            "graph: expected the required edge 0 -> 1, got none");
}

}  // namespace
}  // namespace nsimplex::causal

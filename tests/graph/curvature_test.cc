#include "graph/curvature.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>

#include "graph/any_graph.h"

namespace nsimplex::graph {
namespace {

using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;

constexpr double kClose = 1e-12;

std::vector<double> curvatures(const Tuples& graph, Curvature kind) {
  return edge_curvatures(graph.view().tuples, adjacency_of(graph.view()), kind);
}

Tuples complete(int64_t nodes) {
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = i + 1; j < nodes; ++j) edges.insert(edges.end(), {i, j});
  }
  return Tuples::of(nodes, edges, 2, Symmetry::undirected);
}

TEST(Curvature, OfATriangleWithATail) {
  const Tuples graph = Tuples::of(4, {0, 1, 0, 2, 1, 2, 2, 3}, 2, Symmetry::undirected);
  EXPECT_THAT(curvatures(graph, Curvature::plain), ElementsAre(0, -1, -1, 0));
  EXPECT_THAT(curvatures(graph, Curvature::augmented), ElementsAre(3, 2, 2, 0));
  // {0, 1}: 2/2 + 2/2 - 2 + 2/2 + 1/2; {0, 2}: 2/2 + 2/3 - 2 + 2/3 + 1/2; the tail has an end of
  // degree 1.
  EXPECT_THAT(curvatures(graph, Curvature::balanced),
              ElementsAre(DoubleEq(1.5), testing::DoubleNear(5. / 6, kClose),
                          testing::DoubleNear(5. / 6, kClose), 0));
}

// Examples of Topping et al.: cycles, complete graphs, grids.
TEST(Curvature, BalancedOfKnownGraphs) {
  EXPECT_THAT(curvatures(chain(3, true), Curvature::balanced), Each(DoubleEq(1.5)));
  EXPECT_THAT(curvatures(chain(4, true), Curvature::balanced), Each(DoubleEq(1)));
  EXPECT_THAT(curvatures(chain(5, true), Curvature::balanced), Each(DoubleEq(0)));
  for (const int64_t n : {4, 5, 7}) {
    EXPECT_THAT(curvatures(complete(n), Curvature::balanced),
                Each(testing::DoubleNear(double(n) / double(n - 1), kClose)));
  }
}

// Topping et al., definition 1, with matrices.
double balanced_by_definition(const Tuples& graph, int64_t i, int64_t j) {
  const int64_t n = graph.node_offsets.back();
  std::vector<std::vector<int64_t>> a(n, std::vector<int64_t>(n, 0));
  for (size_t e = 0; e < graph.values.size(); e += 2) {
    a[graph.values[e]][graph.values[e + 1]] = a[graph.values[e + 1]][graph.values[e]] = 1;
  }
  const auto degree = [&](int64_t v) { return double(std::ranges::count(a[v], 1)); };
  const double small = std::min(degree(i), degree(j)), large = std::max(degree(i), degree(j));
  if (small == 1) return 0;
  double triangles = 0, corners = 0, most = 0;
  for (int64_t k = 0; k < n; ++k) triangles += double(a[i][k] * a[j][k]);
  for (const auto& [x, y] : {std::pair{i, j}, {j, i}}) {
    for (int64_t k = 0; k < n; ++k) {
      if (a[x][k] == 0 || a[y][k] == 1 || k == y) continue;
      double count = -1;  // A_k . (A_y - A_x * A_y) - 1
      for (int64_t w = 0; w < n; ++w) count += double(a[k][w] * (a[y][w] - a[x][w] * a[y][w]));
      corners += count > 0;
      most = std::max(most, count);
    }
  }
  return 2 / degree(i) + 2 / degree(j) - 2 + 2 * triangles / large + triangles / small +
         (most > 0 ? corners / (most * large) : 0);
}

TEST(Curvature, BalancedIsThatOfTheDefinition) {
  rc::check([] {
    const Tuples graph = any_graph(*rc::gen::inRange<int64_t>(0, 9));
    const auto values = curvatures(graph, Curvature::balanced);
    for (size_t e = 0; e < values.size(); ++e) {
      const double expected =
          balanced_by_definition(graph, graph.values[2 * e], graph.values[2 * e + 1]);
      RC_ASSERT(std::abs(values[e] - expected) < kClose);
    }
  });
}

TEST(Curvature, OfAChainAndItsLineGraph) {
  const Tuples graph = chain(5);
  const CurvatureComparison result = compare_with_line_graph(graph.view().tuples, 5);
  EXPECT_EQ(result.nodes, 5);
  EXPECT_EQ(result.edges, 4);
  EXPECT_EQ(result.line_edges, 3);
  const auto plain = static_cast<size_t>(Curvature::plain);
  EXPECT_DOUBLE_EQ(result.graph[plain]->mean, 0.5);  // 1, 0, 0, 1
  EXPECT_DOUBLE_EQ(result.graph[plain]->minimum, 0);
  EXPECT_DOUBLE_EQ(result.line_graph[plain]->mean, 2. / 3);
}

TEST(Curvature, OfGraphsTooSmallForALineGraph) {
  const CurvatureComparison none = compare_with_line_graph(Rows{nullptr, 0, 2}, 3);
  const Tuples edge = chain(2);
  const CurvatureComparison one = compare_with_line_graph(edge.view().tuples, 2);
  for (const Curvature kind : kCurvatures) {
    const auto place = static_cast<size_t>(kind);
    EXPECT_FALSE(none.graph[place]);
    EXPECT_TRUE(one.graph[place]);
    EXPECT_FALSE(one.line_graph[place]);
  }
}

}  // namespace
}  // namespace nsimplex::graph

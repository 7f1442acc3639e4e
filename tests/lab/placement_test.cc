#include "lab/claims/robustness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nsimplex::causal {
namespace {

Placement placed(const Matrix& tangents, const Matrix& graph) {
  return placement_of(tangents, TableView(graph.data(), graph.rows(), graph.cols()));
}

// A chain 0 -> 1 -> 2 on a line from the origin.
TEST(Placement, OfAChainFromTheOriginIsPerfect) {
  Matrix graph = Matrix::Zero(3, 3), points(3, 2);
  graph(0, 1) = graph(1, 2) = 1;
  points << 0, 0, 1, 0, 2, 0;
  const Placement good = placed(points, graph);
  EXPECT_DOUBLE_EQ(good.edge_area, 1);
  EXPECT_DOUBLE_EQ(good.generality_correlation, 1);
  // Backwards: the same distances, the most general node farthest out.
  points << 2, 0, 1, 0, 0, 0;
  const Placement bad = placed(points, graph);
  EXPECT_DOUBLE_EQ(bad.edge_area, 1);
  EXPECT_DOUBLE_EQ(bad.generality_correlation, -1);
  // The end of the chain beside its beginning.
  points << 0, 0, 3, 0, 0.1, 0;
  EXPECT_DOUBLE_EQ(placed(points, graph).edge_area, 0);
}

TEST(Placement, CountsDescendantsOverAllPaths) {
  // 3 -> 0 -> {1, 2}: 3, 2, 0, 0 descendants, with edges that come in any order.
  Matrix graph = Matrix::Zero(4, 4), points(4, 2);
  graph(0, 1) = graph(0, 2) = graph(3, 0) = -0.5;
  points << 1, 0, 2, 0, 0, 2, 0.5, 0;
  EXPECT_DOUBLE_EQ(placed(points, graph).generality_correlation, 1);
}

TEST(Placement, WithoutEdgesSaysNothing) {
  const Placement none = placed(Matrix::Identity(3, 3), Matrix::Zero(3, 3));
  EXPECT_TRUE(std::isnan(none.edge_area));
  EXPECT_TRUE(std::isnan(none.generality_correlation));
}

}  // namespace
}  // namespace nsimplex::causal

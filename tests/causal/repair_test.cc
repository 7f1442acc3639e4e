#include "causal/graph/acyclic.h"

#include <gtest/gtest.h>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

TEST(RepairCycles, LeavesAnAcyclicGraphAlone) {
  Matrix weights = Matrix::Zero(3, 3);
  weights << 0, 1, -2, 0, 0, 0.5, 0, 0, 0;
  const Matrix before = weights;
  EXPECT_TRUE(repair_cycles(weights, AllowedEdges({}, 3)).empty());
  EXPECT_EQ(weights, before);
}

TEST(RepairCycles, TakesTheWeakestEdgeOfEachCycle) {
  Matrix weights = Matrix::Zero(4, 4);
  weights(0, 1) = 2;
  weights(1, 2) = -0.3;
  weights(2, 0) = 1;
  weights(2, 3) = 0.1;
  weights(3, 3) = 5;  // a loop is a cycle, too
  const std::vector<CausalEdge> expected = {{3, 3}, {1, 2}};
  EXPECT_EQ(repair_cycles(weights, AllowedEdges({}, 4)), expected);
  EXPECT_EQ(weights(1, 2), 0);
  EXPECT_EQ(weights(0, 1), 2);
  EXPECT_EQ(weights(2, 0), 1);
  EXPECT_EQ(weights(2, 3), 0.1);
}

TEST(RepairCycles, KeepsWhatIsRequired) {
  Matrix weights = Matrix::Zero(2, 2);
  weights(0, 1) = 3;
  weights(1, 0) = 0.01;
  const std::vector<CausalEdge> expected = {{0, 1}};
  EXPECT_EQ(repair_cycles(weights, AllowedEdges({.required = {{1, 0}}}, 2)), expected);
  EXPECT_EQ(weights(1, 0), 0.01);
}

// Beyond one word of bits: what is left has an order, and what went would close a cycle.
TEST(RepairCycles, MakesAnyGraphAcyclicAndTakesNoMore) {
  constexpr int64_t kFeatures = 130;
  RandomStream random(3);
  Matrix weights = Matrix::Zero(kFeatures, kFeatures);
  for (int k = 0; k < 600; ++k) {
    weights(random.below(kFeatures), random.below(kFeatures)) = random.unit() + 0.1;
  }
  const auto removed = repair_cycles(weights, AllowedEdges({}, kFeatures));
  EXPECT_FALSE(removed.empty());
  // paths(i, j): how many paths lead from i to j; finite as there are no cycles.
  const Matrix step = (weights.array() != 0).cast<double>();
  Matrix paths = Matrix::Zero(kFeatures, kFeatures), power = step;
  for (int64_t length = 1; length < kFeatures && power.maxCoeff() > 0; ++length) {
    paths += power;
    power = power * step;
  }
  EXPECT_EQ(power.maxCoeff(), 0);
  for (const CausalEdge& edge : removed) {
    EXPECT_TRUE(edge.cause == edge.effect || paths(edge.effect, edge.cause) > 0);
  }
}

}  // namespace
}  // namespace nsimplex::causal

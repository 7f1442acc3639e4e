// Graphs without units, pulls of any strength, and embeddings that carry nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "causal/embedding/embed.h"
#include "causal/embedding/neighbours.h"
#include "causal/embedding/points.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

using ::testing::HasSubstr;

// A random graph of `edges` edges, from lower to higher numbers, with weights of either sign.
SparseGraph drawn_graph(int64_t nodes, int64_t edges, uint64_t seed) {
  RandomStream draws(seed);
  Matrix weights = Matrix::Zero(nodes, nodes);
  while ((weights.array() != 0).count() < edges) {
    const auto one = static_cast<int64_t>(draws.below(nodes)),
               other = static_cast<int64_t>(draws.below(nodes));
    if (one < other) weights(one, other) = draws.unit() < 0.5 ? 0.3 + draws.unit() : -1;
  }
  return weights.sparseView();
}

// The graph of the same columns in units of 10^U(-3, 3), times a factor.
SparseGraph in_other_units(const SparseGraph& graph, double factor, uint64_t seed) {
  RandomStream draws(seed);
  Eigen::ArrayXd units(graph.rows());
  for (double& unit : units) unit = std::pow(10, 6 * draws.unit() - 3);
  SparseGraph changed = graph;
  for (int64_t node = 0; node < changed.rows(); ++node) {
    for (SparseGraph::InnerIterator edge(changed, node); edge; ++edge) {
      edge.valueRef() *= factor * units[edge.col()] / units[node];
    }
  }
  return changed;
}

// The share at the origin of the nodes that have edges, and negatives: nothing repels the others.
double at_origin(const Embedding& made, const SparseGraph& graph) {
  double joined = 0, central = 0;
  const Attraction attraction(graph, made.attraction);
  for (int64_t node = 0; node < graph.rows(); ++node) {
    if (attraction.of(node).empty() || attraction.negatives(node) == 0) continue;
    ++joined;
    central += made.tangents.row(node).norm() < kBlankRadius;
  }
  return central / joined;
}

TEST(Balance, IsTheSameInAllUnits) {
  const SparseGraph graph = drawn_graph(12, 24, 1);
  const Matrix one = Matrix(balanced(graph));
  for (const double factor : {1.0, 1e-6, 1e6, 1e-150, 1e150}) {
    for (const uint64_t seed : {1, 2, 3}) {
      EXPECT_EQ(Matrix(balanced(in_other_units(graph, factor, seed))), one) << factor;
    }
  }
  EXPECT_GT((one.array() - 1).abs().maxCoeff(), 0.1);  // weights still count
}

TEST(Balance, GivesTheEdgesOfAForestOneWeight) {
  Matrix tree = Matrix::Zero(6, 6);
  tree(0, 1) = 5, tree(0, 2) = -1e-3, tree(2, 3) = 7e8, tree(4, 5) = 0.1;
  EXPECT_EQ(Matrix(balanced(tree.sparseView())), Matrix((tree.array() != 0).cast<double>()));
  EXPECT_EQ(balanced(SparseGraph(3, 3)).nonZeros(), 0);
}

TEST(Balance, KeepsWhichWayIsTheWeakerOne) {
  // From 0 to 3 by 1 and by 2, of which the second is a hundredth.
  Matrix ways = Matrix::Zero(4, 4);
  ways(0, 1) = ways(1, 3) = 1, ways(0, 2) = ways(2, 3) = 0.1;
  const Matrix free = Matrix(balanced(ways.sparseView()));
  EXPECT_GT(free(0, 1) * free(1, 3), 99 * free(0, 2) * free(2, 3));
}

TEST(Balance, EmbedsTheSamePointsInAllUnits) {
  for (const int64_t nodes : {10, 30}) {
    const SparseGraph graph = drawn_graph(nodes, 2 * nodes, 7);
    const Matrix points = embed(graph, {}, one_by_one).tangents;
    for (const double factor : {1e-6, 1e6, 1e-150}) {
      const SparseGraph other = in_other_units(graph, factor, 3);
      EXPECT_LT((embed(other, {}, one_by_one).tangents - points).norm(), 1e-9);
      EXPECT_LT((embed(graph * factor, {}, one_by_one).tangents - points).norm(), 1e-9);
    }
  }
}

TEST(Pull, LeavesNoNodeWithEdgesAtTheOrigin) {
  for (const int64_t nodes : {10, 20, 50}) {
    for (const double degree : {0.5, 1.0, 2.0}) {
      // Two hops join nearly all of ten nodes with twenty edges: too little repels the central ones.
      if (nodes == 10 && degree == 2) continue;
      const SparseGraph graph =
          drawn_graph(nodes, std::llround(degree * static_cast<double>(nodes)), 5);
      CausalEmbeddingOptions options;
      options.dimension = 8;
      const Embedding made = embed(graph, options, one_by_one);
      EXPECT_LT(at_origin(made, graph), 0.11) << nodes << " " << degree;
      EXPECT_EQ(why_blank(made.tangents, graph), "");
    }
  }
}

// Of several graphs: the means of one strength are within a tenth of the best of seven.
TEST(Pull, IsNearTheBestStrength) {
  std::vector<double> ranks, precisions;
  for (const double strength :
       {CausalEmbeddingOptions{}.generality, 0.0, 0.1, 0.3, 1.0, 2.0, 3.0}) {
    double rank = 0, precision = 0;
    for (const uint64_t seed : {1, 2, 3, 4}) {
      const SparseGraph graph = drawn_graph(40, 70, seed);
      CausalEmbeddingOptions options;
      options.dimension = 8;
      options.generality = strength;
      const Embedding made = embed(graph, options, one_by_one);
      const Ranking ranking =
          rank_ancestors(Points(made.tangents), transitive_closure(graph), one_by_one);
      rank += ranking.mean_rank;
      precision += ranking.mean_precision;
    }
    ranks.push_back(rank);
    precisions.push_back(precision);
  }
  EXPECT_LT(ranks[0], 1.1 * *std::ranges::min_element(ranks));
  EXPECT_GT(precisions[0], 0.9 * *std::ranges::max_element(precisions));
}

TEST(Pull, IsThePrintedOneWhereAskedFor) {
  CausalEmbeddingOptions options;
  const Eigen::ArrayXd attractions = Eigen::Array3d(4, 1, 0),
                       generality = Eigen::Array3d(.5, .3, .2);
  options.generality = 0.1;
  options.relative = false;
  EXPECT_TRUE(pulls(attractions, generality, options).isApprox(0.1 * generality));
  options.relative = true;  // W is 2.5
  EXPECT_TRUE(pulls(attractions, generality, options)
                  .isApprox(0.3 * std::sqrt(2.5) * Eigen::Array3d(2, 1, 0) * generality));
}

TEST(Blank, SaysWhy) {
  const SparseGraph graph = drawn_graph(5, 6, 1);
  Matrix points = Matrix::Zero(5, 2);
  EXPECT_THAT(why_blank(points, graph), HasSubstr("5 of 5 nodes with edges lie within 0.05"));
  EXPECT_THAT(why_blank(points, SparseGraph(5, 5)), HasSubstr("no edges"));
  points.setConstant(1);
  EXPECT_THAT(why_blank(points), HasSubstr("all 5 points lie in one point"));
  points(3, 0) = 2;
  EXPECT_EQ(why_blank(points), "");
}

TEST(Embed, RefusesWeightsTooLargeForNumbers) {
  CausalEmbeddingOptions options;
  options.balanced = false;
  Matrix chain = Matrix::Zero(3, 3);
  chain(0, 1) = chain(1, 2) = 1e200;
  const SparseGraph graph = chain.sparseView();
  EXPECT_THROW(embed(graph, options, one_by_one), InputError);
  options.balanced = true;
  EXPECT_TRUE(embed(graph, options, one_by_one).tangents.allFinite());
}

}  // namespace
}  // namespace nsimplex::causal

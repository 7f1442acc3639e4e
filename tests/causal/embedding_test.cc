// The contrastive loss and its gradient, what attracts what, PageRank, ranks, the whole embedding.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "causal/embedding/embed.h"
#include "causal/embedding/embedding_loss.h"
#include "causal/embedding/neighbours.h"
#include "causal/embedding/points.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

struct Edge {
  int64_t from, to;
  double weight = 1;
};

SparseGraph graph_of(int64_t nodes, const std::vector<Edge>& edges) {
  std::vector<Eigen::Triplet<double, int64_t>> entries;
  for (const Edge& edge : edges) entries.emplace_back(edge.from, edge.to, edge.weight);
  SparseGraph graph(nodes, nodes);
  graph.setFromTriplets(entries.begin(), entries.end());
  return graph;
}

// 0 -> 1 -> 2 -> 3, 0 -> 4, 5 alone.
SparseGraph small_graph() {
  return graph_of(6, {{0, 1, 2.0}, {1, 2, -0.5}, {2, 3, 1.5}, {0, 4, 0.7}});
}

Matrix some_points(int64_t nodes, int64_t dimension, double size) {
  RandomStream draws(11);
  Matrix points(nodes, dimension);
  for (int64_t at = 0; at < points.size(); ++at) points.data()[at] = size * (draws.unit() - 0.5);
  return points;
}

// Eq. 15 to 17 as they stand, times the number of nodes.
double loss_by_definition(const Matrix& z, const Attraction& attraction,
                          const Eigen::ArrayXd& generality, const std::vector<int64_t>& negatives) {
  const Points points(z);
  double loss = 0;
  for (int64_t m = 0; m < z.rows(); ++m) {
    std::vector<char> repels(z.rows(), 1);
    repels[m] = 0;
    for (const auto& pair : attraction.of(m)) repels[pair.other] &= !pair.attracts;
    double sum = 0, drawn = 0;
    for (const int64_t n : negatives) {
      if (repels[n]) sum += std::exp(-points.distance(m, n)), ++drawn;
    }
    if (drawn > 0) sum *= static_cast<double>(attraction.negatives(m)) / drawn;
    for (const auto& pair : attraction.of(m)) {
      const double near = std::exp(-points.distance(m, pair.other));
      if (pair.attracts) loss -= pair.weight * std::log(near / (near + sum));
    }
    loss += generality[m] * points.radius(m);
  }
  return loss;
}

TEST(ContrastiveLoss, IsTheFormulaAndItsGradientThatOfTheFormula) {
  const SparseGraph graph = small_graph();
  const Eigen::ArrayXd generality = Eigen::ArrayXd::LinSpaced(6, 0.1, 0.6);
  for (const auto side : {AttractionSide::both, AttractionSide::causes}) {
    for (const auto weight : {AttractionWeight::paths, AttractionWeight::direct}) {
      const Attraction attraction(graph, {.hops = 2, .weight = weight, .side = side});
      for (const auto& negatives : {std::vector<int64_t>{0, 1, 2, 3, 4, 5}, {1, 3, 5}}) {
        Matrix z = some_points(6, 3, 4);
        const ContrastiveLoss loss(attraction, generality);
        const LossGradient made = loss(Points(z), negatives, one_by_one);
        EXPECT_NEAR(made.loss, loss_by_definition(z, attraction, generality, negatives), 1e-10);
        for (int64_t at = 0; at < z.size(); ++at) {
          const double kept = z.data()[at], step = 1e-5;
          z.data()[at] = kept + step;
          const double above = loss_by_definition(z, attraction, generality, negatives);
          z.data()[at] = kept - step;
          const double below = loss_by_definition(z, attraction, generality, negatives);
          z.data()[at] = kept;
          EXPECT_NEAR(made.gradient.data()[at], (above - below) / (2 * step), 1e-6);
        }
      }
    }
  }
}

TEST(ContrastiveLoss, PointsThatCoincidePullNowhere) {
  const Attraction attraction(small_graph(), {});
  const Eigen::ArrayXd generality = Eigen::ArrayXd::Zero(6);
  for (const Matrix& z : {Matrix(Matrix::Zero(6, 2)), Matrix(Matrix::Constant(6, 2, 0.3))}) {
    const LossGradient made =
        ContrastiveLoss(attraction, generality)(Points(z), {0, 1, 2, 3, 4, 5}, one_by_one);
    EXPECT_TRUE(std::isfinite(made.loss));
    EXPECT_TRUE(made.gradient.isZero());
  }
}

TEST(Attraction, WeighsPathsInBothDirections) {
  const Attraction attraction(small_graph(), {.hops = 2, .decay = 0.5});
  const auto row = attraction.of(1);  // 0 and 2 by an edge, 3 by a path of two
  ASSERT_EQ(row.size(), 3u);
  EXPECT_EQ(row[0].other, 0);
  EXPECT_DOUBLE_EQ(row[0].weight, 2.0);
  EXPECT_EQ(row[1].other, 2);
  EXPECT_DOUBLE_EQ(row[1].weight, 0.5);
  EXPECT_EQ(row[2].other, 3);
  EXPECT_DOUBLE_EQ(row[2].weight, 0.5 * 0.5 * 1.5);
  EXPECT_EQ(attraction.negatives(1), 2);
  EXPECT_EQ(attraction.negatives(5), 5);  // in no path
}

TEST(Attraction, DirectWeighsEffectsAlone) {
  const Attraction attraction(small_graph(), {.hops = 2, .weight = AttractionWeight::direct});
  const auto row = attraction.of(1);
  EXPECT_EQ(row[0].weight, 0);  // 0 is the cause
  EXPECT_DOUBLE_EQ(row[1].weight, 0.5);
  EXPECT_EQ(row[2].weight, 0);  // two hops
  EXPECT_EQ(attraction.negatives(1), 2);
}

TEST(Attraction, OfCausesLeavesEffectsAmongTheNegatives) {
  const Attraction attraction(small_graph(), {.hops = 2, .side = AttractionSide::causes});
  EXPECT_EQ(attraction.negatives(0), 5);
  EXPECT_EQ(attraction.negatives(3), 3);
  EXPECT_FALSE(attraction.of(1)[1].attracts);
  EXPECT_TRUE(attraction.of(1)[1].back);
}

TEST(Attraction, KnowsAClosure) {
  EXPECT_FALSE(is_closure(small_graph()));
  EXPECT_TRUE(is_closure(graph_of(3, {{0, 1}, {1, 2, -1}, {0, 2, 1}})));
  EXPECT_TRUE(is_closure(graph_of(2, {})));
}

// Every graph without two edges after each other is its own closure, which says nothing of it.
TEST(Attraction, KnowsAHierarchy) {
  EXPECT_TRUE(is_hierarchy(graph_of(3, {{0, 1}, {1, 2, -1}, {0, 2, 1}})));
  EXPECT_FALSE(is_hierarchy(small_graph()));
  EXPECT_FALSE(is_hierarchy(graph_of(2, {})));
  EXPECT_FALSE(is_hierarchy(graph_of(4, {{0, 3}, {1, 3}, {2, 3}})));
  EXPECT_FALSE(is_hierarchy(graph_of(3, {{0, 0}, {0, 1}, {2, 1}})));
  EXPECT_FALSE(is_hierarchy(graph_of(2, {{0, 1}, {1, 0}})));
}

TEST(Embed, TakesCausesOfOneOutcomeForNoHierarchy) {
  const auto attraction_of = [](const SparseGraph& graph) {
    return embed(graph, {.steps = 0}, one_by_one).attraction;
  };
  const AttractionOptions star = attraction_of(graph_of(4, {{0, 3}, {1, 3}, {2, 3}}));
  EXPECT_EQ(star.side, AttractionSide::both);
  EXPECT_EQ(star.hops, 2);
  const AttractionOptions closed = attraction_of(graph_of(3, {{0, 1}, {1, 2}, {0, 2}}));
  EXPECT_EQ(closed.side, AttractionSide::causes);
  EXPECT_EQ(closed.hops, 1);
}

TEST(PageRank, IsTheStationaryDistribution) {
  const SparseGraph graph = small_graph();
  const Eigen::ArrayXd rank = causal_pagerank(graph, 0.15, DanglingRule::uniform);
  EXPECT_NEAR(rank.sum(), 1, 1e-12);
  // pi_i = .85 (sum_j |A_ij| / in_j pi_j + what is at nodes without causes, spread) + .15 / M.
  const double spread = (0.85 * (rank[0] + rank[5]) + 0.15) / 6;
  EXPECT_NEAR(rank[0], 0.85 * (rank[1] + rank[4]) + spread, 1e-11);
  EXPECT_NEAR(rank[2], 0.85 * rank[3] + spread, 1e-11);
  EXPECT_NEAR(rank[3], spread, 1e-11);
  EXPECT_GT(rank[0], rank[1]);
}

TEST(PageRank, SharesAnEffectAmongItsCausesByStrength) {
  const Eigen::ArrayXd rank =
      causal_pagerank(graph_of(3, {{0, 2, 3.0}, {1, 2, -1.0}}), 0.15, DanglingRule::uniform);
  EXPECT_NEAR(rank[0] - rank[2], 3 * (rank[1] - rank[2]), 1e-11);
}

TEST(PageRank, EigenvectorOfAChainIsThatOfItsMatrix) {
  const SparseGraph graph = graph_of(3, {{0, 1}, {1, 2}});
  const Eigen::ArrayXd rank = causal_pagerank(graph, 0.15, DanglingRule::eigenvector);
  const Matrix walk = 0.85 * Matrix(graph) + Matrix::Constant(3, 3, 0.15 / 3);
  const Vector image = walk * rank.matrix();
  EXPECT_NEAR(image.sum(), 0.48, 0.01);  // below 1: the printed equation has no solution
  EXPECT_LT((image - image.sum() * rank.matrix()).norm(), 1e-11);
}

TEST(Ranking, CountsTiesAgainstTheAncestor) {
  // On a line: 0 at the origin is the ancestor of 1; 2 is as far from 1 as 0 is.
  Matrix z = Matrix::Zero(4, 2);
  z(1, 0) = 1;
  z(2, 0) = 2;
  z(3, 0) = -3;
  const Ranking one = rank_ancestors(Points(z), graph_of(4, {{0, 1}}), one_by_one);
  EXPECT_EQ(one.mean_rank, 2);
  EXPECT_EQ(one.mean_precision, 0.5);
  // 3 is an ancestor besides, behind 0 and 2: AP = (1/2 + 2/3) / 2; other ancestors do not count.
  const Ranking two = rank_ancestors(Points(z), graph_of(4, {{0, 1}, {3, 1}}), one_by_one);
  EXPECT_EQ(two.mean_rank, 2);
  EXPECT_NEAR(two.mean_precision, (0.5 + 2.0 / 3) / 2, 1e-15);
  EXPECT_EQ(two.pairs, 2);
}

// All descendants below their ancestors, of a tree of three levels.
SparseGraph tree_closure() {
  std::vector<Edge> edges;
  for (int64_t child = 1; child < 31; ++child) {
    for (int64_t above = child; above > 0;) {
      above = (above - 1) / 2;
      edges.push_back({above, child});
    }
  }
  return graph_of(31, edges);
}

class Optimisers : public testing::TestWithParam<EmbeddingOptimiser> {};

TEST_P(Optimisers, EmbedATree) {
  CausalEmbeddingOptions options;
  options.dimension = 3;
  options.optimiser = GetParam();
  options.steps = 400;
  const SparseGraph tree = tree_closure();
  const Embedding made = embed(tree, options, one_by_one);
  EXPECT_EQ(made.attraction.hops, 1);
  EXPECT_EQ(made.attraction.side, AttractionSide::causes);
  const Ranking ranking = rank_ancestors(Points(made.tangents), tree, one_by_one);
  EXPECT_LT(ranking.mean_rank, 1.4);
  EXPECT_GT(ranking.mean_precision, 0.85);
  EXPECT_LT(made.tangents.row(0).norm(), made.tangents.row(30).norm());  // the root is general
}

INSTANTIATE_TEST_SUITE_P(Embedding, Optimisers,
                         testing::Values(EmbeddingOptimiser::rsgd, EmbeddingOptimiser::radam,
                                         EmbeddingOptimiser::tangent));

TEST(Embedding, SampledNegativesLeadToTheSame) {
  CausalEmbeddingOptions options;
  options.negatives = 8;
  options.steps = 600;
  const SparseGraph tree = tree_closure();
  const Embedding made = embed(tree, options, one_by_one);
  EXPECT_LT(rank_ancestors(Points(made.tangents), tree, one_by_one).mean_rank, 1.6);
}

TEST(Embedding, ReportsNodesWithoutNegatives) {
  CausalEmbeddingOptions options;
  options.steps = 3;
  options.side = AttractionSide::both;
  const Embedding made = embed(graph_of(3, {{0, 1}, {0, 2}}), options, one_by_one);
  EXPECT_EQ(made.without_negatives, 1);  // 0; its effects repel each other
}

TEST(Embedding, NamesWhatCannotBe) {
  CausalEmbeddingOptions options;
  options.dimension = 1;
  EXPECT_THROW(embed(small_graph(), options, one_by_one), InputError);
  options = {};
  options.restart = 1;
  EXPECT_THROW(embed(small_graph(), options, one_by_one), InputError);
}

}  // namespace
}  // namespace nsimplex::causal

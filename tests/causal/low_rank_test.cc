#include "causal/structure/low_rank.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "causal/structure/acyclicity.h"
#include "finite_differences.h"

namespace nsimplex::causal {
namespace {

using test::finite_differences;
using test::uniform_matrix;

constexpr int64_t kLowRankFeatures = 11, kRank = 3;

LowRankGraph some_graph(uint64_t seed) {
  RandomStream random(seed);
  return {uniform_matrix(kLowRankFeatures, kRank, 0.5, random),
          uniform_matrix(kLowRankFeatures, kRank, 0.5, random)};
}

LowRankGraph zeros() {
  return {Matrix::Zero(kLowRankFeatures, kRank), Matrix::Zero(kLowRankFeatures, kRank)};
}

// Finite differences by U and by V, against slopes.
void expect_slopes(const std::function<double(const LowRankGraph&)>& function,
                   const LowRankGraph& graph, const LowRankGraph& slopes) {
  const Matrix by_cause = finite_differences<Matrix>(
      [&](const Matrix& cause) { return function({cause, graph.effect}); }, graph.cause);
  const Matrix by_effect = finite_differences<Matrix>(
      [&](const Matrix& effect) { return function({graph.cause, effect}); }, graph.effect);
  EXPECT_LT((slopes.cause - by_cause).cwiseAbs().maxCoeff(), 1e-7);
  EXPECT_LT((slopes.effect - by_effect).cwiseAbs().maxCoeff(), 1e-7);
}

TEST(LowRank, InverseIsTheDenseOne) {
  const LowRankGraph graph = some_graph(1);
  const Matrix rest = Matrix::Identity(kLowRankFeatures, kLowRankFeatures) - graph.dense();
  const Matrix expected = rest.inverse();
  const LowRankInverse inverse(graph);
  ASSERT_TRUE(inverse.exists());
  const Matrix one = Matrix::Identity(kLowRankFeatures, kLowRankFeatures);
  EXPECT_LT((inverse.times(one) - expected).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT((inverse.transposed_times(one) - expected.transpose()).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT((inverse.diagonal() - expected.diagonal()).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_NEAR(inverse.log_det(), std::log(rest.determinant()), 1e-12);
}

TEST(LowRank, InverseRefusesWhatHasNone) {
  LowRankGraph graph = zeros();
  graph.cause(0, 0) = 1;
  graph.effect(0, 0) = -0.95;  // D_0 = 0.05
  EXPECT_FALSE(LowRankInverse(graph).exists());
  graph.effect(0, 0) = -0.5;
  EXPECT_TRUE(LowRankInverse(graph).exists());
  // An edge each way of weight 2: det(I - A) = -3.
  graph = zeros();
  graph.cause(0, 0) = graph.cause(1, 1) = 2;
  graph.effect(1, 0) = graph.effect(0, 1) = 1;
  EXPECT_FALSE(LowRankInverse(graph).exists());
}

TEST(LowRank, LossIsTheDenseOneAndItsSlopes) {
  RandomStream random(3);
  const Matrix table = uniform_matrix(40, kLowRankFeatures, 1, random);
  const Matrix covariance = table.transpose() * table / 40;
  const LowRankGraph graph = some_graph(2);
  LowRankGraph slopes = zeros(), unused = zeros();
  const Matrix rest = Matrix::Identity(kLowRankFeatures, kLowRankFeatures) - graph.dense();
  EXPECT_NEAR(low_rank_loss(graph, covariance, slopes),
              (rest.transpose() * covariance * rest).trace() / 2, 1e-12);
  expect_slopes([&](const LowRankGraph& at) { return low_rank_loss(at, covariance, unused); },
                graph, slopes);
}

TEST(LowRank, SlopesOfTheDeterminant) {
  const LowRankGraph graph = some_graph(4);
  LowRankGraph slopes = zeros();
  add_log_det_slopes(graph, LowRankInverse(graph), 0.7, slopes);
  expect_slopes([](const LowRankGraph& at) { return -0.7 * LowRankInverse(at).log_det(); }, graph,
                slopes);
}

TEST(LowRank, SpectralRadiusIsTheDenseOneAndItsSlopes) {
  const LowRankGraph graph = some_graph(5);
  const auto radius = [](const LowRankGraph& at) {
    return Matrix(at.dense().cwiseAbs2()).eigenvalues().cwiseAbs().maxCoeff();
  };
  PerronVectors vectors;
  LowRankGraph slopes = zeros();
  EXPECT_NEAR(low_rank_radius(graph, vectors, 1, slopes), radius(graph), 1e-7);
  // From the vectors of the last call the iteration settles further.
  slopes = zeros();
  EXPECT_NEAR(low_rank_radius(graph, vectors, 1, slopes), radius(graph), 1e-8);
  LowRankGraph exact = zeros();
  for (int call = 0; call < 5; ++call) {
    exact = zeros();
    low_rank_radius(graph, vectors, 1, exact);
  }
  const Matrix by_cause = finite_differences<Matrix>(
      [&](const Matrix& cause) { return radius({cause, graph.effect}); }, graph.cause);
  EXPECT_LT((exact.cause - by_cause).cwiseAbs().maxCoeff(), 1e-3);
}

TEST(SpectralAcyclicity, IsTheDenseRadiusAndItsGradient) {
  RandomStream random(6);
  const CandidateEdges edges({}, 7);
  Vector weights = uniform_matrix(edges.size(), 1, 1, random);
  // An edge each way, with eigenvalues +-r, and columns on no cycle.
  const Matrix two_cycle = [] {
    Matrix graph = Matrix::Zero(7, 7);
    graph(0, 1) = 0.8;
    graph(1, 0) = -0.5;
    graph(1, 2) = graph(4, 0) = graph(5, 6) = 2;
    return graph;
  }();
  for (const Vector& point : {weights, Vector(edges.weights(two_cycle))}) {
    const auto radius = [&](const Vector& at) {
      return Matrix(edges.matrix(at).cwiseAbs2()).eigenvalues().cwiseAbs().maxCoeff();
    };
    SpectralAcyclicity acyclicity(edges);
    Vector gradient;
    for (int call = 0; call < 5; ++call) acyclicity(point, gradient);
    EXPECT_NEAR(acyclicity(point, gradient), radius(point), 1e-7);
    if (point[2] == weights[2]) {  // of the other matrix eigenvalues are no smooth function
      const Vector expected = finite_differences<Vector>(radius, point);
      EXPECT_LT((gradient - expected).cwiseAbs().maxCoeff(), 1e-3);
    }
  }
}

TEST(SpectralAcyclicity, IsZeroWithoutCycles) {
  const CandidateEdges edges({}, 4);
  Matrix graph = Matrix::Zero(4, 4);
  graph(0, 1) = graph(1, 2) = graph(0, 3) = 5;
  SpectralAcyclicity acyclicity(edges);
  Vector gradient;
  EXPECT_EQ(acyclicity(edges.weights(graph), gradient), 0);
  EXPECT_EQ(gradient.cwiseAbs().maxCoeff(), 0);
  graph(2, 0) = 1e-4;
  EXPECT_GT(acyclicity(edges.weights(graph), gradient), 0);
}

}  // namespace
}  // namespace nsimplex::causal

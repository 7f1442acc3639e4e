#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/synthetic/structural_model.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

Matrix ones_at(int64_t nodes, const std::vector<std::pair<int, int>>& edges) {
  Matrix graph = Matrix::Zero(nodes, nodes);
  for (const auto& [cause, effect] : edges) graph(cause, effect) = 1.0;
  return graph;
}

Matrix drawn(int64_t nodes, int64_t degree, uint64_t seed) {
  const auto edges = random_dag(CausalGraph::erdos_renyi, nodes, degree, seed);
  Matrix graph = Matrix::Zero(nodes, nodes);
  for (size_t end = 0; end < edges.size(); end += 2) graph(edges[end], edges[end + 1]) = 1.0;
  return graph;
}

TEST(CausalOrder, PutsCausesFirstAndKnowsCycles) {
  EXPECT_EQ(causal_order(ones_at(4, {{3, 0}, {0, 2}, {3, 1}})), (std::vector<int64_t>{3, 0, 1, 2}));
  EXPECT_FALSE(causal_order(ones_at(3, {{0, 1}, {1, 2}, {2, 0}})));
  EXPECT_FALSE(causal_order(ones_at(1, {{0, 0}})));
  EXPECT_TRUE(causal_order(Matrix::Zero(0, 0)));
}

TEST(EdgeErrors, AReversedEdgeIsOneStepAway) {
  const Matrix truth = ones_at(4, {{0, 1}, {1, 2}, {2, 3}});
  const EdgeErrors errors = edge_errors(ones_at(4, {{0, 1}, {2, 1}, {0, 3}}), truth);
  EXPECT_EQ(errors.edges, 3);
  EXPECT_EQ(errors.true_edges, 3);
  EXPECT_EQ(errors.reversed, 1);
  EXPECT_EQ(errors.extra, 1);
  EXPECT_EQ(errors.missing, 1);
  EXPECT_EQ(errors.shd, 3);
  EXPECT_DOUBLE_EQ(errors.precision, 1. / 3);
  EXPECT_DOUBLE_EQ(errors.recall, 1. / 3);
  EXPECT_DOUBLE_EQ(errors.f1, 1. / 3);
  EXPECT_DOUBLE_EQ(errors.false_discovery_rate, 2. / 3);
  const EdgeErrors empty = edge_errors(Matrix::Zero(4, 4), truth);
  EXPECT_EQ(empty.shd, 3);
  EXPECT_EQ(empty.f1, 0.0);
  EXPECT_EQ(empty.false_discovery_rate, 0.0);
  EXPECT_EQ(edge_errors(truth, truth).shd, 0);
  EXPECT_EQ(edge_errors(truth, truth).f1, 1.0);
}

TEST(EdgeErrors, OfATruthWithEdgesBothWays) {
  const Matrix truth = ones_at(3, {{0, 1}, {1, 0}});
  const EdgeErrors errors = edge_errors(ones_at(3, {{0, 1}}), truth);
  EXPECT_EQ(errors.shd, 1);
  EXPECT_EQ(errors.reversed, 0);
  EXPECT_EQ(errors.missing, 0);
  EXPECT_DOUBLE_EQ(errors.recall, 0.5);
}

TEST(EdgeRanking, LeavesTheDiagonalOut) {
  Matrix scores = Matrix::Zero(3, 3);
  scores(0, 1) = 3.0;
  scores(2, 0) = 2.0;
  scores(1, 2) = 1.0;
  scores.diagonal().setConstant(9.0);
  const EdgeRanking ranking = edge_ranking(scores, ones_at(3, {{0, 1}, {1, 2}}));
  EXPECT_DOUBLE_EQ(ranking.auroc, 7. / 8);  // one of four negatives lies above one of two positives
  EXPECT_DOUBLE_EQ(ranking.auprc, 0.5 * 1 + 0.5 * 2 / 3);
  EXPECT_TRUE(std::isnan(edge_ranking(scores, Matrix::Zero(3, 3)).auroc));
}

TEST(BestThreshold, IsThatOfAllThresholds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix truth = drawn(6, 1, seed);
    RandomStream draws(seed);
    Matrix weights(6, 6);
    for (double& weight : weights.reshaped()) weight = static_cast<double>(draws.below(9) - 4);
    const BestThreshold best = best_threshold(weights + 4 * truth, truth);
    int64_t least = edge_errors(Matrix::Zero(6, 6), truth).shd;
    for (double threshold = 8; threshold >= 1; --threshold) {
      const Matrix graph = (weights + 4 * truth).cwiseAbs().unaryExpr([&](double size) {
        return size >= threshold ? 1.0 : 0.0;
      });
      const int64_t shd = edge_errors(graph, truth).shd;
      least = std::min(least, shd);
      if (threshold == best.threshold) {
        EXPECT_EQ(best.shd, shd);
      }
    }
    EXPECT_EQ(best.shd, least);
  }
  const BestThreshold none = best_threshold(Matrix::Zero(3, 3), ones_at(3, {{0, 1}}));
  EXPECT_TRUE(std::isinf(none.threshold));
  EXPECT_EQ(none.shd, 1);
}

// Figure 1 of Peters and Buehlmann: one more edge and one reversed edge are each one step away, and
// mean nothing and everything to interventions.
TEST(InterventionDistance, OfThePapersExample) {
  const std::vector<std::pair<int, int>> edges{{0, 1}, {0, 2}, {0, 3}, {0, 4},
                                               {1, 2}, {1, 3}, {1, 4}};
  const Matrix truth = ones_at(5, edges);
  Matrix more = truth, other = truth;
  more(2, 3) = 1.0;
  std::swap(other(0, 1), other(1, 0));
  EXPECT_EQ(edge_errors(more, truth).shd, 1);
  EXPECT_EQ(intervention_distance(more, truth), 0);
  EXPECT_EQ(edge_errors(other, truth).shd, 1);
  EXPECT_EQ(intervention_distance(other, truth), 8);
  EXPECT_EQ(intervention_distance(truth, truth), 0);
  EXPECT_FALSE(intervention_distance(truth, ones_at(5, {{0, 1}, {1, 0}})));
  EXPECT_FALSE(intervention_distance(ones_at(5, {{0, 1}, {1, 0}}), truth));
}

// Definition 5 of the paper, path by path.
class ByPaths {
 public:
  ByPaths(const Matrix& graph, const Matrix& truth) : graph_(graph), truth_(truth) {
    const Eigen::Index nodes = truth.rows();
    descends_ = Matrix::Identity(nodes, nodes);
    for (Eigen::Index step = 0; step < nodes; ++step) {
      descends_ = ((descends_ + descends_ * truth).array() > 0).cast<double>();
    }
  }

  int64_t distance() {
    int64_t count = 0;
    for (Eigen::Index i = 0; i < truth_.rows(); ++i) {
      for (Eigen::Index j = 0; j < truth_.rows(); ++j) count += i != j && wrong(i, j);
    }
    return count;
  }

 private:
  bool wrong(Eigen::Index i, Eigen::Index j) {
    if (graph_(j, i) != 0) return descends_(i, j) != 0;
    cause_ = i;
    effect_ = j;
    bad_ = false;
    path_ = {i};
    extend();
    return bad_;
  }

  bool in_set(Eigen::Index node) const { return graph_(node, cause_) != 0; }

  bool set_below(Eigen::Index node) const {
    for (Eigen::Index z = 0; z < truth_.rows(); ++z) {
      if (in_set(z) && descends_(node, z) != 0) return true;
    }
    return false;
  }

  void extend() {
    if (path_.back() == effect_) return judge();
    for (Eigen::Index next = 0; next < truth_.rows(); ++next) {
      if (truth_(path_.back(), next) == 0 && truth_(next, path_.back()) == 0) continue;
      if (std::find(path_.begin(), path_.end(), next) != path_.end()) continue;
      path_.push_back(next);
      extend();
      path_.pop_back();
    }
  }

  void judge() {
    bool directed = true, open = true, on_causal_path = false;
    for (size_t at = 0; at + 1 < path_.size(); ++at) {
      directed = directed && truth_(path_[at], path_[at + 1]) != 0;
    }
    for (size_t at = 1; at + 1 < path_.size(); ++at) {
      const bool collider =
          truth_(path_[at - 1], path_[at]) != 0 && truth_(path_[at + 1], path_[at]) != 0;
      open = open && (collider ? set_below(path_[at]) : !in_set(path_[at]));
    }
    for (size_t at = 1; at < path_.size(); ++at) {
      on_causal_path = on_causal_path || set_below(path_[at]);
    }
    bad_ = bad_ || (directed ? on_causal_path : open);
  }

  const Matrix &graph_, &truth_;
  Matrix descends_;
  Eigen::Index cause_ = 0, effect_ = 0;
  std::vector<Eigen::Index> path_;
  bool bad_ = false;
};

TEST(InterventionDistance, AgreesWithTheDefinition) {
  int64_t total = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto nodes = static_cast<int64_t>(3 + seed % 4);
    const auto degree = static_cast<int64_t>(1 + seed % 2);
    const Matrix truth = drawn(nodes, degree, 2 * seed), graph = drawn(nodes, degree, 2 * seed + 1);
    const int64_t expected = ByPaths(graph, truth).distance();
    EXPECT_EQ(intervention_distance(graph, truth), expected) << seed;
    total += expected;
  }
  EXPECT_GT(total, 200);
}

TEST(Sortability, CountsPathsOfEveryLength) {
  const Matrix chain = ones_at(3, {{0, 1}, {1, 2}});
  const auto numbers = [](std::initializer_list<double> of) {
    Vector vector(static_cast<Eigen::Index>(of.size()));
    std::copy(of.begin(), of.end(), vector.begin());
    return vector;
  };
  EXPECT_EQ(sortability(numbers({1, 2, 3}), chain), 1.0);
  EXPECT_EQ(sortability(numbers({3, 2, 1}), chain), 0.0);
  EXPECT_EQ(sortability(numbers({1, 1, 1}), chain), 0.5);
  // As the variances of standardised columns.
  EXPECT_EQ(sortability(numbers({1, 1 + 1e-15, 1 + 2e-15}), chain), 0.5);
  EXPECT_EQ(sortability(numbers({1e-300, 2e-300, 3e-300}), chain), 1.0);
  // 0 -> 1 rises, 1 -> 2 falls, 0 -> 1 -> 2 rises.
  EXPECT_DOUBLE_EQ(sortability(numbers({1, 3, 2}), chain), 2. / 3);
  // Of a pair, a path of one edge and one of two count each.
  EXPECT_DOUBLE_EQ(sortability(numbers({1, 3, 2}), ones_at(3, {{0, 1}, {1, 2}, {0, 2}})), 3. / 4);
  EXPECT_TRUE(std::isnan(sortability(numbers({1, 2}), Matrix::Zero(2, 2))));
  // A cycle has paths without end; those of up to M - 1 edges count.
  EXPECT_EQ(sortability(numbers({1, 2}), ones_at(2, {{0, 1}, {1, 0}})), 0.5);
}

// The same with powers of the matrix.
TEST(Sortability, AgreesWithPowersOfTheMatrix) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Matrix graph = drawn(70, 2, seed);
    RandomStream draws(seed);
    Vector numbers(70);
    for (double& number : numbers) number = static_cast<double>(draws.below(20));
    double pairs = 0, ordered = 0;
    for (Matrix power = graph; power.any(); power = ((power * graph).array() > 0).cast<double>()) {
      for (int i = 0; i < 70; ++i) {
        for (int j = 0; j < 70; ++j) {
          pairs += power(i, j);
          const double step = numbers(j) - numbers(i);
          ordered += power(i, j) * (step > 0 ? 1.0 : step == 0 ? 0.5 : 0.0);
        }
      }
    }
    EXPECT_DOUBLE_EQ(sortability(numbers, graph), ordered / pairs);
  }
}

TEST(Sortability, R2IsThatOfARegressionOnAllOthers) {
  // x2 = x0 + x1 exactly orthogonal columns, so that R^2 of x0 given x2 and the noise can be said.
  Matrix table(8, 3);
  for (int row = 0; row < 8; ++row) {
    const double a = row & 1 ? 1 : -1, b = row & 2 ? 1 : -1, c = row & 4 ? 1 : -1;
    table.row(row) << a + 5, b, a + 2 * c;
  }
  const TableView view(table.data(), 8, 3);
  const Vector r2 = column_r2(view);
  EXPECT_NEAR(r2(0), 0.2, 1e-8);
  EXPECT_NEAR(r2(1), 0.0, 1e-8);
  EXPECT_NEAR(r2(2), 0.2, 1e-8);
  EXPECT_DOUBLE_EQ(column_variances(view)(0), 1.0);
  EXPECT_DOUBLE_EQ(column_variances(view)(2), 5.0);
  // Two rows explain everything.
  const Vector few = column_r2(TableView(table.data(), 2, 3));
  EXPECT_TRUE(few.allFinite());
}

}  // namespace
}  // namespace nsimplex::causal

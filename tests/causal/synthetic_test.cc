#include <gtest/gtest.h>

#include <Eigen/LU>

#include <cmath>
#include <set>

#include "causal/graph/acyclic.h"
#include "causal/synthetic/structural_model.h"
#include "input_error_of.h"

namespace nsimplex::causal {
namespace {

Matrix sample_of(const CausalSimulationOptions& options) {
  return StructuralModel(options).sample(options.observations, options.sample_seed,
                                         options.interventions);
}

TEST(RandomDag, HasTheEdgesThatItsKindSays) {
  for (const auto& [kind, degree, expected] :
       {std::tuple{CausalGraph::erdos_renyi, int64_t{2}, size_t{40}},
        std::tuple{CausalGraph::erdos_renyi, int64_t{100}, size_t{190}},
        std::tuple{CausalGraph::erdos_renyi, int64_t{0}, size_t{0}},
        std::tuple{CausalGraph::scale_free, int64_t{2}, size_t{36}}}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<int64_t> edges = random_dag(kind, 20, degree, seed);
      ASSERT_EQ(edges.size(), 2 * expected);
      Matrix graph = Matrix::Zero(20, 20);
      for (size_t end = 0; end < edges.size(); end += 2) graph(edges[end], edges[end + 1]) += 1.0;
      EXPECT_LE(expected == 0 ? 0.0 : graph.maxCoeff(), 1.0);
      EXPECT_TRUE(causal_order(graph));
    }
  }
}

TEST(RandomDag, EveryEdgeIsAsLikely) {
  Matrix count = Matrix::Zero(5, 5);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const std::vector<int64_t> edges = random_dag(CausalGraph::erdos_renyi, 5, 1, seed);
    for (size_t end = 0; end < edges.size(); end += 2) count(edges[end], edges[end + 1]) += 1.0;
  }
  // 5 of 20 directed pairs: 1000 each, with a standard deviation of 27.
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) EXPECT_NEAR(count(i, j), i == j ? 0 : 1000, 120);
  }
}

TEST(StructuralModel, LinearOnesHaveTheirPopulationsCovariance) {
  const CausalSimulationOptions options{.nodes = 6, .observations = 40000, .seed = 3};
  const StructuralModel model(options);
  const Matrix& weights = model.weights();
  EXPECT_EQ((weights.array() != 0).count(), 12);
  for (const double weight : weights.reshaped()) {
    EXPECT_TRUE(weight == 0.0 || (std::abs(weight) >= 0.5 && std::abs(weight) < 2.0));
  }
  const Matrix table = sample_of(options);
  const Matrix through = (Matrix::Identity(6, 6) - weights).inverse();  // x = e through
  const Matrix population = through.transpose() * through;
  const Matrix sample = table.transpose() * table / 40000.0;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      const double deviation = std::sqrt(
          (population(i, i) * population(j, j) + population(i, j) * population(i, j)) / 40000);
      EXPECT_NEAR(sample(i, j), population(i, j), 5 * deviation) << i << ' ' << j;
    }
  }
}

TEST(StructuralModel, NoiseHasMeanZeroVarianceOneAndItsKindsSkewness) {
  for (const auto& [noise, skewness] :
       {std::pair{CausalNoise::gaussian, 0.0}, std::pair{CausalNoise::exponential, 2.0},
        std::pair{CausalNoise::gumbel, 1.13955}}) {
    const Matrix table =
        sample_of({.nodes = 4, .degree = 0, .observations = 50000, .noise = noise, .seed = 5});
    EXPECT_NEAR(table.mean(), 0.0, 0.012);
    EXPECT_NEAR(table.array().square().mean(), 1.0, 0.03);
    EXPECT_NEAR(table.array().cube().mean(), skewness, 0.15);
  }
}

TEST(StructuralModel, NoisesOfTheirOwnVariance) {
  const Matrix table =
      sample_of({.nodes = 40, .degree = 0, .observations = 4000, .equal_variances = false});
  const Vector deviations = table.array().square().colwise().mean().sqrt().transpose();
  EXPECT_GT(deviations.minCoeff(), 0.45);
  EXPECT_LT(deviations.maxCoeff(), 2.1);
  EXPECT_GT(deviations.maxCoeff() - deviations.minCoeff(), 1.0);
}

TEST(StructuralModel, AnInterventionMovesWhatDescendsFromItAndNothingElse) {
  // 0 -> 1 -> 2, 3 -> 2
  Matrix graph = Matrix::Zero(4, 4);
  graph(0, 1) = graph(1, 2) = graph(3, 2) = 1.0;
  for (const CausalMechanism mechanism :
       {CausalMechanism::linear, CausalMechanism::mlp, CausalMechanism::additive_gp}) {
    const CausalSimulationOptions options{.mechanism = mechanism, .seed = 2};
    const StructuralModel model(graph, options);
    const std::vector<Intervention> set_one{{1, 3.0}};
    const Matrix plain = model.sample(50, 7, {}), moved = model.sample(50, 7, set_one);
    EXPECT_EQ(plain.col(0), moved.col(0));
    EXPECT_EQ(plain.col(3), moved.col(3));
    EXPECT_TRUE((moved.col(1).array() == 3.0).all());
    EXPECT_TRUE((moved.col(2) - plain.col(2)).array().abs().minCoeff() > 0.0);
    if (mechanism == CausalMechanism::linear) {
      const Vector expected = model.weights()(1, 2) * (moved.col(1) - plain.col(1));
      EXPECT_LT((moved.col(2) - plain.col(2) - expected).array().abs().maxCoeff(), 1e-12);
    }
    // More rows begin with the same ones; another seed has others.
    EXPECT_EQ(model.sample(60, 7, {}).topRows(50), plain);
    EXPECT_NE(model.sample(50, 8, {}), plain);
  }
}

// Over many draws f(x) f(y) has the mean exp(-(x - y)^2 / 2).
TEST(StructuralModel, AdditiveFunctionsAreOfAGaussianProcess) {
  const CausalSimulationOptions options{.mechanism = CausalMechanism::additive_gp};
  Matrix points(4, 1);
  points << 0.0, 0.5, 1.5, 4.0;
  Matrix products = Matrix::Zero(4, 4);
  constexpr int kDraws = 1500;
  for (int draw = 0; draw < kDraws; ++draw) {
    RandomStream draws(static_cast<uint64_t>(draw));
    const Vector values = (*make_mechanism(options, Vector::Ones(1), draws))(points);
    products += values * values.transpose() / kDraws;
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const double step = points(i) - points(j);
      EXPECT_NEAR(products(i, j), std::exp(-step * step / 2), 0.15) << i << ' ' << j;
    }
  }
}

// sigmoid units of weights 0: w2 . 0.5
TEST(StructuralModel, MlpsSumSigmoids) {
  const CausalSimulationOptions options{.mechanism = CausalMechanism::mlp};
  RandomStream draws(1);
  const auto mlp = make_mechanism(options, Vector::Ones(2), draws);
  const Vector at_zero = (*mlp)(Matrix::Zero(1, 2)), far = (*mlp)(Matrix::Constant(1, 2, 1e6));
  const Vector back = (*mlp)(Matrix::Constant(1, 2, -1e6));
  // Saturated units of both sides sum to all weights, which is twice their value at 0.
  EXPECT_NEAR(far(0) + back(0), 2 * at_zero(0), 1e-9);
  EXPECT_GT(std::abs(far(0) - back(0)), 0.1);
}

TEST(StructuralModel, IsTheSameOnEveryMachine) {
  const Matrix table = sample_of({.nodes = 3, .degree = 1, .observations = 2, .seed = 1});
  EXPECT_EQ(table, sample_of({.nodes = 3, .degree = 1, .observations = 2, .seed = 1}));
  EXPECT_NE(table, sample_of({.nodes = 3, .degree = 1, .observations = 2, .seed = 2}));
}

TEST(StructuralModel, NamesWhatCannotBe) {
  const auto error = [](const CausalSimulationOptions& options) {
    return nsimplex::test::input_error_of([&] { sample_of(options); });
  };
  EXPECT_EQ(error({.nodes = 0}), "nodes: expected at least 1, got 0");
  EXPECT_EQ(error({.degree = -1}), "degree: expected at least 0, got -1");
  EXPECT_EQ(error({.graph = CausalGraph::scale_free, .degree = 0}),
            "degree: expected at least 1, got 0");
  EXPECT_EQ(error({.observations = 0}), "observations: expected at least 1, got 0");
  EXPECT_EQ(error({.weight_low = 2.0, .weight_high = 1.0}),
            "weights: expected finite numbers with 0 <= low <= high, got 2 and 1");
  EXPECT_EQ(error({.nodes = 3, .interventions = {{3, 1.0}}}),
            "interventions: expected columns of 0 .. 2, got 3");
  EXPECT_EQ(error({.nodes = 3, .interventions = {{1, 1.0}, {1, 2.0}}}),
            "interventions: expected one value a column, got two for 1");
  EXPECT_EQ(nsimplex::test::input_error_of([] { StructuralModel(Matrix::Ones(2, 2), {}); }),
            "graph: expected no cycles, got a graph with one");
}

}  // namespace
}  // namespace nsimplex::causal

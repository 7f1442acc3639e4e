#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>

#include <cmath>
#include <limits>

namespace nsimplex {
namespace {

using at::Tensor;

CausalSimulation six_columns() {
  return simulate_causal({.nodes = 6, .degree = 1, .observations = 300, .seed = 4});
}

// The rows of a sample by their definition.
Tensor rows_of(int64_t number, Resampling resampling, uint64_t seed) {
  const bool halves = resampling == Resampling::halves;
  const auto pair = static_cast<uint64_t>(halves ? number / 2 : number);
  const auto generator = at::detail::createCPUGenerator(seed * 1'000'003 + pair);
  if (!halves) return at::randint(300, {300}, generator, at::kLong);
  return at::randperm(300, generator, at::kLong).narrow(0, 150 * (number % 2), 150);
}

TEST(EdgeConfidence, IsTheShareOfTheSamples) {
  const CausalSimulation simulated = six_columns();
  const CausalFitOptions options{.estimator = StructureEstimator::order, .seed = 2};
  for (const Resampling resampling : {Resampling::halves, Resampling::bootstrap}) {
    const EdgeConfidence found =
        edge_confidence(simulated.table, options, {.replicates = 6, .resampling = resampling});
    Tensor edges = at::zeros({6, 6}, at::kDouble), either = edges.clone(), paths = edges.clone();
    for (int64_t number = 0; number < 6; ++number) {
      const Tensor rows = simulated.table.index_select(0, rows_of(number, resampling, 2));
      const Tensor graph = (causal_fit(rows, options).adjacency != 0).to(at::kDouble);
      edges += graph;
      either += (graph + graph.t()) > 0;
      paths += (at::matrix_exp(graph) - at::eye(6, at::kDouble)) > 1e-12;
    }
    EXPECT_TRUE(at::allclose(found.frequencies, edges / 6));
    EXPECT_TRUE(at::allclose(found.connected, either / 6));
    EXPECT_TRUE(at::allclose(found.ancestors, paths / 6));
    EXPECT_NEAR(found.edges, edges.sum().item<double>() / 6, 1e-12);
    EXPECT_EQ(found.replicates, 6);
    EXPECT_TRUE(found.adjacency.equal(causal_fit(simulated.table, options).adjacency));
  }
}

TEST(EdgeConfidence, IntervalsAreThoseOfRegressions) {
  const CausalSimulation simulated = six_columns();
  const EdgeConfidence found =
      edge_confidence(simulated.table, {}, {.replicates = 5, .level = 0.5});
  const Tensor edges = (found.adjacency != 0).nonzero();
  ASSERT_GT(edges.size(0), 0);
  for (int64_t k = 0; k < edges.size(0); ++k) {
    const int64_t cause = edges[k][0].item<int64_t>(), effect = edges[k][1].item<int64_t>();
    const Tensor causes = (found.adjacency.select(1, effect) != 0).nonzero().flatten();
    std::vector<Tensor> weights;
    for (int64_t number = 0; number < 5; ++number) {
      const Tensor rows = simulated.table.index_select(0, rows_of(number, Resampling::halves, 0));
      const Tensor centred = rows - rows.mean(0);
      const Tensor slopes =
          at::mv(at::linalg_pinv(centred.index_select(1, causes)), centred.select(1, effect));
      weights.push_back(slopes.masked_select(causes == cause));
    }
    const Tensor sorted = std::get<0>(at::cat(weights).sort());
    EXPECT_NEAR(found.low[cause][effect].item<double>(), sorted[1].item<double>(), 1e-9);
    EXPECT_NEAR(found.high[cause][effect].item<double>(), sorted[3].item<double>(), 1e-9);
  }
  EXPECT_TRUE(found.low.isnan().equal(found.adjacency == 0));
}

TEST(EdgeConfidence, DoesNotDependOnThreads) {
  const CausalSimulation simulated = six_columns();
  const int before = at::get_num_threads();
  const auto with = [&](int threads) {
    at::set_num_threads(threads);
    return edge_confidence(simulated.table.narrow(0, 0, 60), {.seed = 3}, {.replicates = 7});
  };
  const EdgeConfidence one = with(1), three = with(3);
  at::set_num_threads(before);
  EXPECT_TRUE(one.frequencies.equal(three.frequencies));
  EXPECT_TRUE(one.ancestors.equal(three.ancestors));
  EXPECT_TRUE(one.low.nan_to_num(9).equal(three.low.nan_to_num(9)));
}

TEST(EdgeConfidence, ColumnsThatAreConstantInASampleHaveNoEdges) {
  Tensor rare = at::zeros({300, 1}, at::kDouble);
  rare[7][0] = 1.0;
  const Tensor table = at::cat({rare, six_columns().table}, 1);
  CausalFitOptions options;
  options.constraints.tiers = {1, 0, 0, 0, 0, 0, 0};
  options.constraints.required = {{1, 2}};
  options.constraints.forbidden = {{3, 0}};
  const EdgeConfidence found = edge_confidence(table, options, {.replicates = 8});
  EXPECT_EQ(found.frequencies[1][2].item<double>(), 1);
  EXPECT_EQ(found.frequencies.select(0, 0).sum().item<double>(), 0);
}

TEST(EdgeConfidence, GroupsTargetsAndKindsGoWithTheirRows) {
  const CausalSimulation simulated = six_columns();
  CausalFitOptions options;
  for (int64_t row = 0; row < 300; ++row) {
    options.groups.push_back(100 * (row % 3) - 50);
    options.targets.push_back(row % 4 == 0 ? std::vector<int64_t>{2} : std::vector<int64_t>{});
  }
  // Offsets of groups are no effects, and rows set from outside say nothing of causes.
  Tensor table = simulated.table.clone();
  for (int64_t row = 0; row < 300; ++row) table[row] += 50.0 * static_cast<double>(row % 3);
  const EdgeConfidence found = edge_confidence(table, options, {.replicates = 4});
  const Tensor edges = simulated.weights != 0;
  EXPECT_GT(found.frequencies.masked_select(edges).mean().item<double>(), 0.7);
  EXPECT_TRUE(found.high.masked_select(found.adjacency != 0).isfinite().all().item<bool>());
  EXPECT_LT((found.low - simulated.weights)
                .masked_select(edges.logical_and(found.adjacency != 0))
                .abs()
                .max()
                .item<double>(),
            0.6);

  CausalFitOptions mixed;
  mixed.kinds.assign(6, ColumnKind::continuous);
  mixed.kinds[5] = ColumnKind::binary;
  table = simulated.table.clone();
  table.select(1, 5).copy_(table.select(1, 5) > 0);
  const EdgeConfidence kinds = edge_confidence(table, mixed, {.replicates = 2});
  EXPECT_EQ(kinds.frequencies.isfinite().all().item<bool>(), true);
}

TEST(EdgeConfidence, GapsMayStay) {
  Tensor table = six_columns().table;
  table.narrow(0, 3, 20).select(1, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  const EdgeConfidence found =
      edge_confidence(table, {.missing = MissingValues::likelihood}, {.replicates = 4});
  EXPECT_GT(found.edges, 3);
  EXPECT_TRUE(found.low.masked_select(found.adjacency != 0).isfinite().all().item<bool>());
}

TEST(EdgeConfidence, TellsItsProgressAndMayBeStopped) {
  std::vector<int64_t> told;
  EdgeConfidenceOptions options{.replicates = 5};
  options.progress = [&](int64_t done) { told.push_back(done); };
  edge_confidence(six_columns().table, {}, options);
  EXPECT_EQ(told, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  options.progress = [](int64_t) { throw std::runtime_error("enough"); };
  EXPECT_THROW(edge_confidence(six_columns().table, {}, options), std::runtime_error);
}

TEST(EdgeConfidence, StableEdgesAndTheirBound) {
  const CausalSimulation simulated = six_columns();
  const EdgeConfidence found = edge_confidence(simulated.table, {}, {.replicates = 40});
  EXPECT_EQ(causal_metrics(found.stable(), simulated.weights).shd, 0);
  EXPECT_NEAR(found.expected_false(0.75), found.edges * found.edges / (0.5 * 30), 1e-12);
  EXPECT_THROW(found.expected_false(0.5), c10::ValueError);
  EXPECT_TRUE(at::equal(found.stable(0), found.adjacency));
  for (const double wrong : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(found.stable(wrong), c10::ValueError);
  }
}

TEST(EdgeConfidence, NamesWhatCannotBe) {
  const Tensor table = six_columns().table;
  const auto error_of = [&](const Tensor& given, const EdgeConfidenceOptions& options) {
    try {
      edge_confidence(given, {}, options);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  EXPECT_EQ(error_of(table, {.replicates = 1}),
            "[edge_confidence] replicates: expected 2 to 100000, got 1");
  EXPECT_EQ(error_of(table, {.level = 1}),
            "[edge_confidence] level: expected a number in (0, 1), got 1");
  EXPECT_EQ(error_of(table.narrow(0, 0, 3), {}),
            "[edge_confidence] table: expected at least 4 rows to sample from, got 3");
  EXPECT_THROW(edge_confidence(table, at::zeros({3, 3}, at::kDouble), {}, {}), c10::ValueError);
}

}  // namespace
}  // namespace nsimplex

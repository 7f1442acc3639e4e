#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>

#include <algorithm>
#include <cmath>

#include "made_tables.h"

namespace nsimplex {
namespace {

using at::Tensor;

Tensor chain_table() {
  causal::Matrix weights = causal::Matrix::Zero(3, 3);
  weights(0, 1) = 1.5;
  weights(1, 2) = 0.1;
  const auto made = causal::test::linear_table(weights, 4000, 1);
  Tensor table = at::empty({4000, 3}, at::kDouble);
  std::copy_n(made.table.data(), made.table.size(), table.mutable_data_ptr<double>());
  return table;
}

TEST(CausalFit, GivesAGraphWithItsScores) {
  const CausalFit fit = causal_fit(chain_table());
  EXPECT_EQ(fit.model, "equal variances");
  EXPECT_NEAR(fit.adjacency[0][1].item<double>(), 1.5, 0.1);
  EXPECT_NEAR(fit.adjacency[1][2].item<double>(), 0.1, 0.05);
  EXPECT_EQ(fit.adjacency.count_nonzero().item<int64_t>(), 2);
  EXPECT_TRUE(fit.weights.equal(fit.adjacency));
  EXPECT_GT(fit.scores[0][1].item<double>(), fit.scores[1][2].item<double>());
  EXPECT_EQ(fit.removed.sizes(), at::IntArrayRef({0, 2}));
  EXPECT_GT(fit.seconds, 0);
}

TEST(CausalFit, ThresholdSparesRequiredEdges) {
  CausalFitOptions options{.threshold = 2};
  options.constraints.required = {{1, 2}};
  const CausalFit fit = causal_fit(chain_table(), options);
  EXPECT_EQ(fit.adjacency.count_nonzero().item<int64_t>(), 1);
  EXPECT_NE(fit.adjacency[1][2].item<double>(), 0);
  EXPECT_EQ(fit.weights.count_nonzero().item<int64_t>(), 2);
}

TEST(CausalFit, SaysThatItWasStopped) {
  CausalFitOptions options;
  options.stop = [] { return false; };
  EXPECT_FALSE(causal_fit(chain_table(), options).interrupted);
  options.standardise = true;
  options.stop = [] { return true; };
  const CausalFit fit = causal_fit(chain_table(), options);
  EXPECT_TRUE(fit.interrupted);
  EXPECT_GT(fit.adjacency.count_nonzero().item<int64_t>(), 0);
  // The linear graph, when there is no time for curved effects.
  options.nonlinear = true;
  EXPECT_TRUE(causal_fit(chain_table(), options).adjacency.equal(fit.adjacency));
}

TEST(CausalFit, TheSpectralEstimatorKeepsTheGraphThatItHas) {
  for (const int allowed : {0, 1, 3, 5, 20}) {
    int asked = 0;
    CausalFitOptions options{.estimator = StructureEstimator::spectral};
    options.stop = [&] { return asked++ >= allowed; };
    const CausalFit fit = causal_fit(chain_table(), options);
    EXPECT_TRUE(fit.interrupted) << allowed;
    EXPECT_NEAR(fit.adjacency[0][1].item<double>(), 1.5, 0.1) << allowed;
  }
}

TEST(CausalFit, TakesViewsAndScales) {
  const Tensor table = chain_table();
  const Tensor strided = table.t().contiguous().t();
  EXPECT_TRUE(causal_fit(strided).adjacency.equal(causal_fit(table).adjacency));
  // Standardised columns do not know their units.
  const CausalFitOptions options{.standardise = true};
  const Tensor units = at::tensor({1e-3, 1., 1e4}, at::kDouble);
  EXPECT_TRUE(at::allclose(causal_fit(table * units, options).adjacency,
                           causal_fit(table, options).adjacency));
}

TEST(CausalFit, HasNoUnits) {
  const CausalFit plain = causal_fit(chain_table());
  for (const double scale : {1e-300, 1e-200, 1e80, 1e200, 1e300}) {
    const CausalFit far = causal_fit(chain_table() * scale);
    EXPECT_TRUE(at::allclose(far.adjacency, plain.adjacency)) << scale;
    EXPECT_TRUE(at::allclose(far.scores, plain.scores, 1e-5, 1e-5)) << scale;
  }
}

TEST(CausalFit, EveryEstimatorFindsAStrongEdge) {
  const Tensor table = chain_table().slice(0, 0, 256);
  for (const auto& [estimator, model] : {std::pair{StructureEstimator::logdet, "logdet"},
                                         {StructureEstimator::notears, "notears"},
                                         {StructureEstimator::spectral, "spectral"},
                                         {StructureEstimator::lowrank, "lowrank"}}) {
    const CausalFit fit = causal_fit(table, {.estimator = estimator});
    EXPECT_EQ(fit.model.rfind(model, 0), 0) << fit.model;
    EXPECT_NEAR(fit.adjacency[0][1].item<double>(), 1.5, 0.3) << model;
    EXPECT_EQ(fit.adjacency.count_nonzero().item<int64_t>(), 1) << model;
  }
}

TEST(CausalFit, PaperFindsAStrongEdgeAndHoldsToItsSeed) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // thousands of tiny operations
  const Tensor table = chain_table().slice(0, 0, 64);
  for (const auto& [estimator, name] : {std::pair{StructureEstimator::paper, "paper"},
                                        {StructureEstimator::paper_lowrank, "paper-lowrank"}}) {
    const CausalFitOptions options{.estimator = estimator, .seed = 3};
    const CausalFit first = causal_fit(table, options), second = causal_fit(table, options);
    EXPECT_EQ(first.model, name);
    EXPECT_TRUE(first.weights.equal(second.weights)) << name;
    EXPECT_GT(first.adjacency[0][1].abs().item<double>(), 0.5) << name;
    EXPECT_EQ(first.adjacency[1][0].item<double>(), 0) << name;
    EXPECT_EQ(first.weights.diagonal().abs().max().item<double>(), 0) << name;
  }
  at::set_num_threads(threads);
}

TEST(CausalFit, PaperStopsWhereTheCheckpointSays) {
  CausalFitOptions options{.estimator = StructureEstimator::paper, .sample = true};
  int calls = 0;
  options.checkpoint = [&] {
    if (++calls == 5) throw std::runtime_error("enough");
  };
  EXPECT_THROW(causal_fit(chain_table().slice(0, 0, 64), options), std::runtime_error);
  EXPECT_EQ(calls, 5);
}

std::string error_of(const Tensor& table, const CausalFitOptions& options = {}) {
  try {
    causal_fit(table, options);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

TEST(CausalFit, NamesWhatItCannotUse) {
  EXPECT_EQ(error_of(at::zeros({3, 3})), "[causal_fit] table: expected float64, got Float");
  EXPECT_EQ(error_of(at::zeros({3}, at::kDouble)),
            "[causal_fit] table: expected 2 axes, got shape [3]");
  EXPECT_EQ(error_of(at::ones({3, 3}, at::kDouble)), "[causal_fit] table: column 0 is constant");
  EXPECT_EQ(error_of(chain_table(), {.threshold = -1}),
            "[causal_fit] threshold: expected a finite number of at least 0, got -1.000000");
  EXPECT_EQ(error_of(chain_table(), {.sparsity = std::nan("")}),
            "[causal_fit] sparsity: expected a finite number of at least 0, got nan");
  EXPECT_EQ(error_of(chain_table(), {.rank = 0}), "[causal_fit] rank: expected at least 1, got 0");
  EXPECT_EQ(
      error_of(chain_table(), {.estimator = StructureEstimator::paper_lowrank, .nonlinear = true}),
      "[causal_fit] nonlinear: expected estimator auto, order or logdet with it, got "
      "paper-lowrank");
  EXPECT_EQ(error_of(chain_table(), {.sparsity = 0.1}),
            "[causal_fit] sparsity: expected estimator logdet, paper, paper-lowrank, lowrank, "
            "notears or spectral with it, got auto");
  EXPECT_THAT(error_of(1e200 * chain_table(), {.estimator = StructureEstimator::paper_lowrank}),
              testing::HasSubstr("spans 1e-30 to 1e30 for paper-lowrank"));
  CausalFitOptions options;
  options.constraints.tiers = {0};
  EXPECT_EQ(error_of(chain_table(), options),
            "[causal_fit] tiers: expected 3, one per column, got 1");
}

}  // namespace
}  // namespace nsimplex

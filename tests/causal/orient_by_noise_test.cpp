#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>

namespace nsimplex {
namespace {

using at::Tensor;

TEST(OrientByNoise, TurnsEdgesOfAFit) {
  const CausalSimulation made = simulate_causal({.graph = CausalGraph::scale_free,
                                                 .nodes = 12,
                                                 .noise = CausalNoise::exponential,
                                                 .seed = 5});
  const CausalFit fit =
      causal_fit(made.table, {.estimator = StructureEstimator::order, .standardise = true});
  const NoiseDirections found = orient_by_noise(made.table, fit.adjacency);
  const int64_t before = causal_metrics(fit.adjacency, made.weights).shd;
  EXPECT_LT(causal_metrics(found.adjacency, made.weights).shd, before);
  EXPECT_LT(found.p_value, 0.01);
  EXPECT_GT(found.gain, 0);
  ASSERT_GT(found.turned.size(0), 0);
  for (int64_t k = 0; k < found.turned.size(0); ++k) {
    const int64_t cause = found.turned[k][0].item<int64_t>();
    const int64_t effect = found.turned[k][1].item<int64_t>();
    EXPECT_NE(found.adjacency[cause][effect].item<double>(), 0);
    EXPECT_NE(fit.adjacency[effect][cause].item<double>(), 0);
  }
}

TEST(OrientByNoise, StopsWhenAsked) {
  const CausalSimulation made = simulate_causal(
      {.nodes = 8, .observations = 300, .noise = CausalNoise::exponential, .seed = 2});
  const Tensor backwards = made.weights.t().contiguous();
  NoiseDirectionsOptions options;
  options.stop = [] { return true; };
  const NoiseDirections found = orient_by_noise(made.table, backwards, options);
  EXPECT_TRUE(found.interrupted);
  EXPECT_EQ(found.turned.size(0), 0);
  EXPECT_TRUE((found.adjacency != 0).equal(backwards != 0));
  options.stop = {};
  options.checkpoint = [] { throw std::runtime_error("enough"); };
  EXPECT_THROW(orient_by_noise(made.table, backwards, options), std::runtime_error);
}

TEST(OrientByNoise, NamesItsArguments) {
  const Tensor table = at::randn({20, 3}, at::kDouble), graph = at::zeros({3, 3}, at::kDouble);
  const auto why = [&](const Tensor& rows, const NoiseDirectionsOptions& options) -> std::string {
    try {
      orient_by_noise(rows, graph, options);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  using testing::HasSubstr;
  EXPECT_THAT(why(table.to(at::kFloat), {}),
              HasSubstr("[orient_by_noise] table: expected float64"));
  EXPECT_THAT(why(table.narrow(0, 0, 3), {}),
              HasSubstr("[orient_by_noise] table: expected at least 4 rows, got 3"));
  EXPECT_THAT(why(table, {.level = 1.5}),
              HasSubstr("[orient_by_noise] level: expected a number in (0, 1), got 1.5"));
  EXPECT_THAT(why(table, {.constraints = {.tiers = {1}}}),
              HasSubstr("[orient_by_noise] tiers: expected 3, one per column, got 1"));
}

}  // namespace
}  // namespace nsimplex

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>

#include <string>

namespace nsimplex {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using enum ColumnKind;

constexpr StructureEstimator kOrder = StructureEstimator::order;

TEST(AutomaticFit, KeepsLinesWhereEffectsAreLinear) {
  const CausalSimulation made = simulate_causal({.nodes = 8, .observations = 400, .seed = 3});
  const CausalFit found = causal_fit(made.table), linear = causal_fit(made.table, {kOrder});
  EXPECT_TRUE(found.adjacency.equal(linear.adjacency));
  EXPECT_FALSE(found.choices.nonlinear);
  EXPECT_EQ(found.model, "equal variances");
  EXPECT_THAT(found.choices.findings,
              ElementsAre(HasSubstr("noises turned no edge"), HasSubstr("effects are lines")));
  EXPECT_TRUE(linear.choices.findings.empty());
}

TEST(AutomaticFit, FitsCurves) {
  const CausalSimulation made = simulate_causal({.nodes = 6,
                                                 .degree = 1,
                                                 .observations = 500,
                                                 .mechanism = CausalMechanism::additive_gp,
                                                 .seed = 2});
  const CausalFit found = causal_fit(made.table);
  EXPECT_TRUE(found.choices.nonlinear);
  EXPECT_TRUE(found.adjacency.equal(
      causal_fit(made.table, {.estimator = kOrder, .nonlinear = true}).adjacency));
  EXPECT_THAT(found.choices.findings, ElementsAre(HasSubstr("effects are curves")));
  EXPECT_TRUE(found.cpdag.equal(found.adjacency.ne(0)));
}

TEST(AutomaticFit, AsksNoisesBeforeItBelievesInCurves) {
  const CausalSimulation made = simulate_causal({.graph = CausalGraph::scale_free,
                                                 .nodes = 12,
                                                 .observations = 2000,
                                                 .noise = CausalNoise::exponential,
                                                 .seed = 5});
  const Tensor scaled = made.table / made.table.std(0, /*unbiased=*/false);
  const CausalFit linear = causal_fit(scaled, {kOrder});
  const CausalFit found = causal_fit(scaled);
  EXPECT_FALSE(found.choices.nonlinear);
  EXPECT_EQ(found.model, "noise");
  ASSERT_TRUE(found.noise);
  EXPECT_GT(found.noise->turned.size(0), 0);
  EXPECT_TRUE(found.noise->told);
  EXPECT_TRUE(found.adjacency.equal(found.noise->adjacency));
  EXPECT_LT(causal_metrics(found.adjacency, made.weights).shd,
            causal_metrics(linear.adjacency, made.weights).shd);
  EXPECT_TRUE(found.cpdag.equal(found.adjacency.ne(0)));
}

// A normal column and `count` columns of 0 and 1.
Tensor with_coins(int64_t count) {
  at::manual_seed(3);
  const Tensor coins = at::rand({400, count}, at::kDouble).gt(0.5).to(at::kDouble);
  return at::cat({at::randn({400, 1}, at::kDouble), coins}, 1).contiguous();
}

TEST(AutomaticFit, NamesTheColumnsOfAKind) {
  const CausalFit found = causal_fit(with_coins(2), {.names = {"a", "sick", "old"}});
  EXPECT_THAT(found.choices.findings, ElementsAre("sick, old are binary, by the values"));
  EXPECT_THAT(found.choices.kinds, ElementsAre(continuous, binary, binary));
  EXPECT_EQ(found.model, "mixed");
}

TEST(AutomaticFit, OptionsThatAreGivenStay) {
  const Tensor table = with_coins(1);
  const CausalFit plain = causal_fit(table, {.kinds = {continuous, continuous}});
  EXPECT_THAT(plain.choices.kinds, ElementsAre(continuous, continuous));
  EXPECT_TRUE(plain.choices.findings.empty());
  EXPECT_TRUE(causal_fit(table, {.nonlinear = true}).choices.nonlinear);
}

TEST(AutomaticFit, SamplesRepeatTheChoices) {
  const CausalSimulation made = simulate_causal({.graph = CausalGraph::scale_free,
                                                 .nodes = 8,
                                                 .observations = 1000,
                                                 .noise = CausalNoise::exponential,
                                                 .seed = 5});
  const Tensor scaled = made.table / made.table.std(0, /*unbiased=*/false);
  const EdgeConfidence found = edge_confidence(scaled, {}, {.replicates = 20});
  const Tensor edges = made.weights.ne(0);
  const auto right = [&](const EdgeConfidence& sure) {
    return sure.frequencies.masked_select(edges).mean().item<double>();
  };
  const EdgeConfidence linear = edge_confidence(scaled, {kOrder}, {.replicates = 20});
  EXPECT_GT(right(found), right(linear));
  const EdgeConfidence turned =
      edge_confidence(scaled, {.estimator = kOrder, .orient_by_noise = true}, {.replicates = 20});
  EXPECT_TRUE(found.frequencies.equal(turned.frequencies));
}

TEST(AutomaticFit, RefusesNoiseWhereItDoesNotHold) {
  const auto why = [](const CausalFitOptions& options) -> std::string {
    try {
      causal_fit(at::randn({60, 2}, at::kDouble), options);
    } catch (const c10::ValueError& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  const std::string expected = "[causal_fit] orient_by_noise: expected ";
  EXPECT_EQ(why({.nonlinear = true, .orient_by_noise = true}),
            expected + "linear effects, got nonlinear");
  EXPECT_EQ(why({.groups = std::vector<int64_t>(60), .orient_by_noise = true}),
            expected + "rows of one group, got groups");
}

}  // namespace
}  // namespace nsimplex

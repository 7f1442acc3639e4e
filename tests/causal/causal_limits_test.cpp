#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nsimplex/causal.h>

#include <cmath>

namespace nsimplex {
namespace {

using at::Tensor;
using testing::EndsWith;
using testing::HasSubstr;

Tensor graph_of(int64_t columns, const std::vector<std::pair<int64_t, int64_t>>& edges) {
  Tensor graph = at::zeros({columns, columns}, at::kDouble);
  for (const auto& [cause, effect] : edges) graph[cause][effect] = 1;
  return graph;
}

// Exponential noise, and two columns that depend on one outside the table.
Tensor hidden_cause(int64_t rows) {
  at::manual_seed(3);
  Tensor noise = at::empty({rows, 6}, at::kDouble).exponential_();
  noise.narrow(1, 0, 2) += 1.2 * noise.narrow(1, 5, 1);
  return noise.narrow(1, 0, 5).contiguous();
}

TEST(CausalLimits, NamesDirectionsThatLinearDataCannotTell) {
  const Tensor graph = graph_of(4, {{0, 1}, {1, 2}, {3, 2}});
  const Tensor table = simulate_causal(graph, {.observations = 500}).table;
  const CausalLimits found = causal_limits(table, graph, {.names = {"a", "b", "c", "d"}});
  EXPECT_TRUE(found.reversible.equal(at::tensor({0, 1}, at::kLong).view({1, 2})));
  EXPECT_TRUE(found.cpdag[1][0].item<bool>() && found.cpdag[1][2].item<bool>());
  EXPECT_FALSE(found.cpdag[2][1].item<bool>());
  EXPECT_EQ(found.variances.edges, 3);
  EXPECT_EQ(found.tests, 6);
  ASSERT_GE(found.findings.size(), 3U);
  EXPECT_THAT(found.findings[1], HasSubstr("The direction of 1 of 3 edges cannot be told"));
  EXPECT_THAT(found.findings[1], EndsWith("data: a - b"));
}

// Every rule of Meek decides an edge: in the first graph 1 -> 2, in the second 0 -> 3.
TEST(CausalLimits, RulesOfMeekDecideFurtherDirections) {
  const auto cpdag = [](int64_t columns, const std::vector<std::pair<int64_t, int64_t>>& edges) {
    const Tensor graph = graph_of(columns, edges);
    const Tensor table = simulate_causal(graph, {.observations = 60}).table;
    return causal_limits(table, graph).cpdag.to(at::kDouble);
  };
  EXPECT_TRUE(cpdag(4, {{0, 2}, {1, 2}, {2, 3}}).equal(graph_of(4, {{0, 2}, {1, 2}, {2, 3}})));
  EXPECT_TRUE(cpdag(4, {{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}})
                  .equal(graph_of(4, {{0, 1}, {1, 0}, {0, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}})));
}

TEST(CausalLimits, EquivalentGraphsHaveOneBic) {
  const Tensor graph = graph_of(3, {{0, 1}, {1, 2}});
  const Tensor table = simulate_causal(graph, {.observations = 300}).table;
  const auto bic = [&](const Tensor& other) { return causal_limits(table, other).bic; };
  EXPECT_NEAR(bic(graph), bic(graph.t()), 1e-6);
  EXPECT_LT(bic(graph), bic(at::zeros_like(graph)));
}

TEST(CausalLimits, NoisesWithACauseOutsideTheTableDepend) {
  const Tensor table = hidden_cause(1000), none = at::zeros({5, 5}, at::kDouble);
  const CausalLimits found = causal_limits(table, none);
  ASSERT_EQ(found.dependent.size(0), 1);
  EXPECT_TRUE(found.dependent[0].equal(at::tensor({0, 1}, at::kLong)));
  EXPECT_LT(found.p_values[0].item<double>(), 0.005);
  EXPECT_THAT(found.findings.back(), HasSubstr("x0 - x1 (p = "));
  EXPECT_TRUE(std::isnan(found.variances.varsortability));
}

TEST(CausalLimits, VariancesThatTellTheOrderAreNamed) {
  const CausalSimulation made = simulate_causal({.nodes = 8, .degree = 2, .observations = 500});
  const VarianceOrder found = variance_order(made.table, made.weights);
  EXPECT_GT(found.varsortability, 0.9);
  EXPECT_THAT(found.evidence, HasSubstr("Variances alone order the columns"));
  const Tensor scaled = (made.table - made.table.mean(0)) / made.table.std(0);
  EXPECT_EQ(variance_order(scaled, made.weights).evidence, "");
}

TEST(CausalLimits, NamesTheArgumentThatIsWrong) {
  const Tensor table = at::randn({9, 2}, at::kDouble), graph = graph_of(2, {{0, 1}});
  const auto error = [](const Tensor& values, const Tensor& edges,
                        const CausalLimitsOptions& options = {}) -> std::string {
    try {
      causal_limits(values, edges, options);
    } catch (const c10::ValueError& wrong) {
      return wrong.what_without_backtrace();
    }
    return "";
  };
  EXPECT_THAT(error(table, graph_of(2, {{0, 1}, {1, 0}})), HasSubstr("graph: expected no cycle"));
  EXPECT_THAT(error(table, at::zeros({3, 3}, at::kDouble)),
              HasSubstr("graph: expected one over 2 columns, got 3"));
  EXPECT_THAT(error(table / 0, graph), HasSubstr("table: expected finite numbers"));
  EXPECT_THAT(error(table.narrow(0, 0, 3), graph), HasSubstr("expected at least 4 rows, got 3"));
  EXPECT_THAT(error(table, graph, {.level = 1.5}), HasSubstr("level: expected a number in (0, 1)"));
  EXPECT_THAT(error(table, graph, {.names = {"a"}}),
              HasSubstr("names: expected 2, one per column"));
}

}  // namespace
}  // namespace nsimplex

#include "causal/graph/edge_constraints.h"

#include <gtest/gtest.h>

#include "causal/tables/column_error.h"
#include "input_error_of.h"

namespace nsimplex::causal {
namespace {

using nsimplex::test::input_error_of;

TEST(AllowedEdges, WithoutConstraintsEverythingButLoops) {
  const AllowedEdges edges({}, 3);
  EXPECT_TRUE(edges.unconstrained());
  for (int64_t cause = 0; cause < 3; ++cause) {
    for (int64_t effect = 0; effect < 3; ++effect) {
      EXPECT_EQ(edges.allowed(cause, effect), cause != effect);
      EXPECT_FALSE(edges.required(cause, effect));
    }
  }
}

TEST(AllowedEdges, TiersForbidWhatRunsBackwards) {
  const AllowedEdges edges({.forbidden = {{0, 1}}, .required = {{0, 2}}, .tiers = {0, 0, 1}}, 3);
  EXPECT_FALSE(edges.unconstrained());
  EXPECT_FALSE(edges.allowed(0, 1));
  EXPECT_TRUE(edges.allowed(1, 0));
  EXPECT_TRUE(edges.allowed(1, 2));
  EXPECT_FALSE(edges.allowed(2, 0));
  EXPECT_FALSE(edges.allowed(2, 1));
  EXPECT_TRUE(edges.required(0, 2));
}

TEST(AllowedEdges, NamesWhatCannotBe) {
  const auto error = [](const EdgeConstraints& constraints) {
    return input_error_of([&] { AllowedEdges(constraints, 3); });
  };
  EXPECT_EQ(error({.forbidden = {{0, 1}, {1, 3}}}),
            "forbidden[1]: expected two different columns of 0 to 2, got (1, 3)");
  EXPECT_EQ(error({.required = {{2, 2}}}),
            "required[0]: expected two different columns of 0 to 2, got (2, 2)");
  EXPECT_EQ(error({.tiers = {0, 1}}), "tiers: expected 3, one per column, got 2");
  EXPECT_EQ(error({.forbidden = {{0, 1}}, .required = {{0, 1}}}),
            "required[0]: expected an edge that neither `forbidden`, tiers, exogenous nor sinks "
            "forbid, got (0, 1)");
  EXPECT_EQ(error({.required = {{1, 0}}, .tiers = {0, 1, 2}}),
            "required[0]: expected an edge that neither `forbidden`, tiers, exogenous nor sinks "
            "forbid, got (1, 0)");
  EXPECT_EQ(error({.required = {{0, 1}, {1, 2}, {2, 0}}}),
            "required[0]: expected edges without a cycle on or before this one, got (0, 1)");
  EXPECT_EQ(error({.required = {{0, 1}}, .paths = {{1, 2}, {2, 0}}}),
            "required[0]: expected edges without a cycle on or before this one, got (0, 1)");
  EXPECT_EQ(error({.paths = {{1, 2}, {2, 1}}}),
            "paths[0]: expected paths without a cycle on or before this one, got (1, 2)");
  EXPECT_EQ(error({.exogenous = {3}}), "exogenous: expected columns 0 to 2, got 3");
  EXPECT_EQ(error({.sinks = {-1}}), "sinks: expected columns 0 to 2, got -1");
}

TEST(AllowedEdges, ExogenousColumnsHaveNoCausesAndSinksNoEffects) {
  const AllowedEdges edges({.exogenous = {1}, .sinks = {2}}, 3);
  EXPECT_FALSE(edges.unconstrained());
  for (int64_t other = 0; other < 3; ++other) {
    EXPECT_FALSE(edges.allowed(other, 1));
    EXPECT_FALSE(edges.allowed(2, other));
  }
  EXPECT_TRUE(edges.allowed(1, 0));
  EXPECT_TRUE(edges.allowed(0, 2));
}

TEST(AllowedEdges, ErrorsHaveTheNamesOfColumns) {
  const auto named = [] {
    naming_columns({"age", "sex"}, [] {
      const AllowedEdges edges({.required = {{0, 1}, {1, 0}}}, 2);
      return 0;
    });
  };
  EXPECT_EQ(input_error_of(named),
            "required[0]: expected edges without a cycle on or before this one, got (age, sex)");
}

}  // namespace
}  // namespace nsimplex::causal

#include "causal/structure/linear_order.h"

#include <gtest/gtest.h>

#include "causal/graph/acyclic.h"
#include "causal/graph/graph_metrics.h"
#include "causal/made_tables.h"

namespace nsimplex::causal {
namespace {

using test::linear_table;
using test::MadeTable;

// 0 -> 1 -> 2 with growing variances: sorting by variance is right, as long as nobody rescales.
TEST(Baselines, SortingByVarianceIsAsGoodAsTheScales) {
  Matrix weights = Matrix::Zero(3, 3);
  weights(0, 1) = weights(1, 2) = 1.5;
  MadeTable made = linear_table(weights, 2000, 1);
  const auto named = [](const std::vector<Baseline>& all, const std::string& name) {
    for (const Baseline& each : all) {
      if (each.name == name) return each.structure;
    }
    ADD_FAILURE() << name;
    return Structure{};
  };
  const auto raw = baselines(made.view());
  ASSERT_EQ(raw.size(), 3u);
  EXPECT_EQ(named(raw, "empty").weights, Matrix::Zero(3, 3));
  const Structure sorted = named(raw, "variance_sort");
  EXPECT_EQ(edge_errors(sorted.weights, weights).shd, 0);
  EXPECT_NEAR(sorted.weights(0, 1), 1.5, 0.1);
  EXPECT_GT(sorted.scores(0, 1), 0.0);
  // The other way round in other units.
  made.table.col(0) *= 100.0;
  made.table.col(2) *= 0.01;
  const Structure rescaled = named(baselines(made.view()), "variance_sort");
  EXPECT_EQ(edge_errors(rescaled.weights, weights).reversed, 2);
  // R^2 does not change with the units.
  EXPECT_TRUE((named(raw, "r2_sort").scores - named(baselines(made.view()), "r2_sort").scores)
                  .cwiseAbs()
                  .maxCoeff() < 1e-6);
}

TEST(Baselines, AreAcyclicWithFewerRowsThanColumnsToo) {
  const MadeTable made = linear_table(test::random_weights(12, 3), 8, 2);
  for (const Baseline& each : baselines(made.view())) {
    EXPECT_TRUE(causal_order(each.structure.weights)) << each.name;
    EXPECT_TRUE(each.structure.weights.allFinite());
  }
}

}  // namespace
}  // namespace nsimplex::causal

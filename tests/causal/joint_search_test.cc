#include "causal/structure/joint_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

// x, w, y = x w + noise of variance 0.25, z = sin(y) w + noise: no sum of functions sees x or w
// behind y.
Matrix product_table(int64_t rows) {
  RandomStream random(2);
  Matrix table(rows, 4);
  for (int64_t row = 0; row < rows; ++row) {
    const double x = random.normal(), w = random.normal();
    const double y = 2 * x * w + 0.5 * random.normal();
    table.row(row) << x, w, y, 2 * std::sin(y) * w + 0.5 * random.normal();
  }
  return table;
}

class JointSearch : public testing::Test {
 protected:
  ParentLists climbed(ParentLists start, double shared) {
    GaussianCost cost{EdgePrices(table_.rows(), 4)};
    cost.shared = shared;
    const Residual residual = [&](int64_t column, const std::vector<int64_t>& causes) {
      return regression_.residuals(causes, {column})[0];
    };
    return climb(residual, edges_, cost, std::move(start), Matrix::Ones(4, 4));
  }

  Matrix table_ = product_table(3000);
  RandomFeatureRegression regression_{{table_.data(), table_.rows(), table_.cols()}, 1};
  AllowedEdges edges_{{}, 4};
};

TEST_F(JointSearch, ClimbsToFunctionsOfSeveralCauses) {
  // Single additions to y gain nothing, so the climb starts with one edge too many.
  const ParentLists found = climbed({{}, {}, {0, 1}, {0, 1, 2}}, 0);
  EXPECT_EQ(found, (ParentLists{{}, {}, {0, 1}, {1, 2}}));
  EXPECT_EQ(climbed(found, 0), found);
  EXPECT_EQ(climbed({{}, {}, {0, 1}, {0, 1, 2}}, 0.25), found);
}

TEST_F(JointSearch, KeepsRequiredEdges) {
  EdgeConstraints known;
  known.required = {{0, 3}};
  known.forbidden = {{1, 3}};
  edges_ = AllowedEdges(known, 4);
  const ParentLists found = climbed({{}, {}, {0, 1}, {0, 2}}, 0);
  EXPECT_EQ(std::ranges::count(found[3], 0), 1);
  EXPECT_EQ(std::ranges::count(found[3], 1), 0);
}

TEST_F(JointSearch, OrdersColumnsOfOneNoiseVariance) {
  // Columns of the variances that their noises have: 1, 1, 4.25 and more.
  Matrix scaled = table_;
  scaled.col(2) *= 2;
  scaled.col(3) *= 2;
  const RandomFeatureRegression regression({scaled.data(), scaled.rows(), scaled.cols()}, 1);
  const ParentLists found = joint_equal_graph(regression, edges_, Precedence({}, 4), {});
  EXPECT_EQ(found, (ParentLists{{}, {}, {0, 1}, {1, 2}}));
}

}  // namespace
}  // namespace nsimplex::causal

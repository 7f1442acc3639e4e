#include "causal/structure/joint_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

// Columns: x, y, sin(x) + y^2 / 2 + noise of variance 0.04, noise alone.
Matrix table_of(int64_t rows) {
  RandomStream random(1);
  Matrix table(rows, 4);
  for (int64_t row = 0; row < rows; ++row) {
    const double x = 1.5 * random.normal(), y = 1 + random.normal();
    table.row(row) << x, y, std::sin(x) + y * y / 2 + 0.2 * random.normal(), random.normal();
  }
  return table;
}

RandomFeatureRegression regression_of(const Matrix& table) {
  return {{table.data(), table.rows(), table.cols()}, 7};
}

TEST(RandomFeatureRegression, LeavesTheNoiseOfAnyFunction) {
  const RandomFeatureRegression regression = regression_of(table_of(4000));
  const Vector left = regression.residuals({0, 1}, {2, 3});
  EXPECT_NEAR(left[0], 0.04, 0.02);
  EXPECT_NEAR(left[1], 1, 0.1);  // nothing explains it, and it is not fitted, either
  EXPECT_GT(regression.residuals({1}, {2})[0], 0.4);
  EXPECT_GT(regression.residuals({0}, {2})[0], 1);
}

TEST(RandomFeatureRegression, WithoutCausesLeavesTheVariance) {
  const RandomFeatureRegression regression = regression_of(table_of(4000));
  EXPECT_NEAR(regression.residuals({}, {0})[0], 2.25, 0.2);
  EXPECT_NEAR(regression.residuals({}, {1})[0], 1, 0.1);
}

TEST(RandomFeatureRegression, TakesFewRowsAndCopies) {
  Matrix table = table_of(6);
  table.col(1) = table.col(0);
  const Vector left = regression_of(table).residuals({0, 1}, {2, 0});
  EXPECT_TRUE(left.allFinite());
  EXPECT_GT(left.minCoeff(), 0);
}

TEST(RandomFeatureRegression, SlopesAreDerivatives) {
  const RandomFeatureRegression regression = regression_of(table_of(4000));
  const RandomFeatureRegression::Slopes slopes = regression.slopes({0, 1, 3}, 2);
  // d/dy = y, of mean 1 and mean square 2; d/dx = cos(x), for x of variance 9/4.
  EXPECT_NEAR(slopes.mean[1] / regression.deviation(1), 1, 0.15);
  EXPECT_NEAR(slopes.square[1] / std::pow(regression.deviation(1), 2), 2, 0.4);
  EXPECT_NEAR(slopes.mean[0] / regression.deviation(0), std::exp(-9. / 8), 0.1);
  EXPECT_NEAR(slopes.square[0] / std::pow(regression.deviation(0), 2), 0.5, 0.15);
  EXPECT_LT(slopes.square[2], 0.05);
}

}  // namespace
}  // namespace nsimplex::causal

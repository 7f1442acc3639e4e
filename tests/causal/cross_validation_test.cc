#include "causal/structure/nonlinear_order.h"

#include <gtest/gtest.h>
#include <Eigen/Cholesky>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

using Columns = Eigen::MatrixXd;

TEST(CrossValidation, PredictsEveryRowFromOtherRows) {
  // As many features as rows: a fit with all rows would leave nothing, and what is random stays so.
  RandomStream random(5);
  const Columns features = Columns::NullaryExpr(200, 120, [&] { return random.normal(); });
  const Columns noise = Columns::NullaryExpr(200, 1, [&] { return random.normal(); });
  const CrossValidation rows(200, 1);
  EXPECT_GT(rows.errors(features, noise, 1e-9).squaredNorm() / 200, 1);
  const Columns linear = features * Columns::Ones(120, 1);
  EXPECT_LT(rows.errors(features, linear, 1e-12).norm() / linear.norm(), 1e-6);
}

TEST(CrossValidation, LeavesOneRowOutWhereThereAreFive) {
  Columns features(5, 1), outputs(5, 1);
  features << 1, 2, 3, 4, 5;
  outputs << 1, 3, 2, 5, 4;
  const Columns errors = CrossValidation(5, 9).errors(features, outputs, 0);
  for (int64_t row = 0; row < 5; ++row) {
    const double square = features.squaredNorm() - features(row) * features(row);
    const double mixed = features.col(0).dot(outputs.col(0)) - features(row) * outputs(row);
    EXPECT_NEAR(errors(row, 0), outputs(row) - features(row) * mixed / square, 1e-12);
  }
}

}  // namespace
}  // namespace nsimplex::causal

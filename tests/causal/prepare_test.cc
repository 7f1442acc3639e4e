#include "causal/structure/prepare.h"

#include <gtest/gtest.h>

#include <limits>

#include "input_error_of.h"

namespace nsimplex::causal {
namespace {

using test::input_error_of;

Matrix prepared(const Matrix& table, bool standardise = false) {
  return prepared_table({table.data(), table.rows(), table.cols()}, standardise);
}

TEST(PreparedTable, IsCentredAndAtWillScaled) {
  Matrix table(4, 2);
  table << 1, 10, 3, 10, 5, 30, 7, 30;
  Matrix centred(4, 2);
  centred << -3, -10, -1, -10, 1, 10, 3, 10;
  EXPECT_LT((prepared(table) - centred).cwiseAbs().maxCoeff(), 1e-15);
  const Matrix scaled = prepared(table, true);
  EXPECT_NEAR(scaled.col(0).squaredNorm() / 4, 1, 1e-15);
  EXPECT_NEAR(scaled(0, 1), -1, 1e-15);
}

TEST(PreparedTable, SaysWhatCannotBeUsed) {
  const auto error = [](const Matrix& table) { return input_error_of([&] { prepared(table); }); };
  EXPECT_EQ(error(Matrix::Random(5, 1)),
            "table: expected at least 2 rows and 2 columns, got 5 x 1");
  EXPECT_EQ(error(Matrix::Random(1, 3)),
            "table: expected at least 2 rows and 2 columns, got 1 x 3");
  Matrix table = Matrix::Random(5, 3);
  table(3, 1) = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error(table), "table: expected finite numbers, got inf in row 3, column 1");
  // One third is rounded in its mean: still constant.
  table.col(1).setConstant(1. / 3);
  EXPECT_EQ(error(table), "table: column 1 is constant");
}

}  // namespace
}  // namespace nsimplex::causal

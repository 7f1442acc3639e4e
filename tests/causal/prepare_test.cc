#include "causal/structure/prepare.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "input_error_of.h"

namespace nsimplex::causal {
namespace {

using nsimplex::test::input_error_of;

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

TEST(PreparedTable, HasAModerateScaleWhateverTheUnits) {
  const Matrix table = Matrix::Random(20, 3);
  const Matrix plain = prepared(table);
  for (const int power : {-1000, -700, 700, 1000}) {
    const Matrix far = prepared(table * std::ldexp(1.0, power));
    const double factor = far(0, 0) / plain(0, 0);
    EXPECT_EQ(std::frexp(factor, std::array<int, 1>{}.data()), 0.5);  // a power of two
    EXPECT_EQ(far, plain * factor);
    EXPECT_GT(far.cwiseAbs().maxCoeff(), 0.1);
    EXPECT_LT(far.cwiseAbs().maxCoeff(), 10);
    EXPECT_EQ(prepared(table * std::ldexp(1.0, power), true), prepared(table, true));
  }
  Matrix mixed = table;
  mixed.col(1) *= 1e200;
  EXPECT_EQ(input_error_of([&] { prepared(mixed); }).substr(0, 35),
            "table: column 0 varies 2^664 times ");
  EXPECT_TRUE(prepared(mixed, true).allFinite());
}

TEST(PreparedTable, AsksForModerateUnitsWhereAnEstimatorMindsThem) {
  const Matrix table = Matrix::Random(20, 3) * 1e200;
  EXPECT_EQ(input_error_of([&] {
              require_moderate_scale({table.data(), table.rows(), table.cols()}, "logdet");
            }).substr(0, 84),
            "table: expected columns of which the widest spans 1e-30 to 1e30 for logdet, whose l1");
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

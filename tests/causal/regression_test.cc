#include "causal/structure/parent_search.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "causal/structure/lasso.h"
#include "made_tables.h"

namespace nsimplex::causal {
namespace {

Matrix covariance() {
  return covariance_of(test::linear_table(test::random_weights(6, 1), 50, 2).view()).matrix;
}

// The variance of `column` that `causes` leave, by a textbook's formula.
double variance_given(const Matrix& covariance, int64_t column, std::vector<int64_t> causes) {
  if (causes.empty()) return covariance(column, column);
  const Matrix own = covariance(causes, causes);
  const Vector mixed = covariance(causes, column);
  return covariance(column, column) - mixed.dot(own.ldlt().solve(mixed));
}

TEST(Covariance, IsOfCentredColumns) {
  Matrix table(4, 2);
  table << 1, 0, 3, 0, 5, 4, 7, 4;
  const Matrix found = covariance_of({table.data(), 4, 2}).matrix;
  EXPECT_DOUBLE_EQ(found(0, 0), 5);
  EXPECT_DOUBLE_EQ(found(1, 1), 4);
  EXPECT_DOUBLE_EQ(found(0, 1), 4);
  EXPECT_DOUBLE_EQ(found(1, 0), 4);
}

TEST(Regress, IsLeastSquares) {
  const Matrix c = covariance();
  const std::vector<int64_t> causes{4, 0, 2};
  const Regression fit = regress(c, 3, causes);
  EXPECT_NEAR(fit.variance, variance_given(c, 3, causes), 1e-12);
  const Vector left = c(causes, 3) - c(causes, causes) * fit.coefficients;
  EXPECT_LT(left.cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_NEAR(fit.variance + fit.increase[0], variance_given(c, 3, {0, 2}), 1e-12);
  EXPECT_NEAR(fit.variance + fit.increase[1], variance_given(c, 3, {4, 2}), 1e-12);
  EXPECT_NEAR(fit.variance + fit.increase[2], variance_given(c, 3, {4, 0}), 1e-12);
}

TEST(Regress, WithoutCausesIsTheVariance) {
  const Matrix c = covariance();
  EXPECT_EQ(regress(c, 1, {}).variance, c(1, 1));
}

TEST(Regress, LeavesOutWhatOthersExplain) {
  Matrix c = covariance();
  c.row(5) = c.row(2);
  c.col(5) = c.col(2);
  const Regression fit = regress(c, 0, std::vector<int64_t>{2, 5});
  EXPECT_NEAR(fit.variance, variance_given(c, 0, {2}), 1e-12);
  EXPECT_EQ(fit.coefficients[1], 0);
  EXPECT_EQ(fit.increase[1], 0);
}

TEST(ConditionedColumns, AreSchurComplements) {
  const Matrix c = covariance();
  ConditionedColumns columns(c);
  columns.condition_on(1);
  columns.condition_on(4);
  columns.condition_on(1);  // again: nothing left of it
  EXPECT_FALSE(columns.varies(4));
  EXPECT_TRUE(columns.varies(0));
  EXPECT_NEAR(columns.variance(0), variance_given(c, 0, {1, 4}), 1e-12);
  const std::vector<int64_t> given{1, 4};
  const Matrix solved = c(given, given).ldlt().solve(Matrix(c(given, Eigen::all)));
  const Vector expected = (c.row(0) - c(0, given) * solved).transpose();
  EXPECT_LT((columns.covariance_with(0) - expected).cwiseAbs().maxCoeff(), 1e-12);
}

}  // namespace
}  // namespace nsimplex::causal

#include "causal/structure/acyclicity.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <unsupported/Eigen/MatrixFunctions>

#include "finite_differences.h"

namespace nsimplex::causal {
namespace {

using test::finite_differences;
using test::uniform_matrix;

TEST(MMatrix, InverseAndDeterminantAreThoseOfPivotedElimination) {
  RandomStream random(1);
  for (const int64_t size : {1, 2, 5, 32, 33, 70, 131}) {
    Matrix matrix = -uniform_matrix(size, size, 1 / static_cast<double>(size), random).cwiseAbs();
    matrix.diagonal().array() += 1.1;
    const Matrix expected = matrix.inverse();
    Matrix inverse = matrix;
    double log_det = 0.5;  // is added to
    ASSERT_TRUE(invert_m_matrix(inverse, log_det)) << size;
    EXPECT_LT((inverse - expected).cwiseAbs().maxCoeff(), 1e-12) << size;
    EXPECT_NEAR(log_det, 0.5 + std::log(matrix.determinant()), 1e-11) << size;
    EXPECT_GE(inverse.minCoeff(), 0) << size;
  }
}

TEST(MMatrix, TellsWhereTheSpectralRadiusIsTooLarge) {
  RandomStream random(2);
  for (const int64_t size : {2, 10, 60}) {
    const Matrix positive = uniform_matrix(size, size, 1, random).cwiseAbs();
    const double radius = positive.eigenvalues().cwiseAbs().maxCoeff();
    for (const double s : {0.99 * radius, 1.01 * radius}) {
      Matrix matrix = s * Matrix::Identity(size, size) - positive;
      double log_det = 0;
      EXPECT_EQ(invert_m_matrix(matrix, log_det), s > radius) << size << " " << s;
    }
  }
}

TEST(MatrixExponential, IsEigens) {
  RandomStream random(3);
  for (const double size : {0.0, 1e-3, 0.2, 1.0, 4.0}) {
    const Matrix matrix = uniform_matrix(9, 9, size, random).cwiseAbs();
    const Eigen::MatrixXd expected = Eigen::MatrixXd(matrix).exp();
    const Matrix found = exponential_of_nonnegative(matrix);
    EXPECT_LT(((found - expected).array() / expected.array().max(1e-300)).abs().maxCoeff(), 1e-12)
        << size;
  }
}

TEST(MatrixExponential, KeepsSmallEntriesBesideLargeOnes) {
  Matrix matrix = Matrix::Zero(3, 3);
  matrix(0, 1) = 1e3;
  matrix(1, 2) = 1e-9;
  const Matrix found = exponential_of_nonnegative(matrix);
  EXPECT_NEAR(found(0, 1) / 1e3, 1, 1e-14);
  EXPECT_NEAR(found(0, 2) / 0.5e-6, 1, 1e-14);
}

TEST(Acyclicity, GradientsAreFiniteDifferences) {
  RandomStream random(4);
  const Matrix weights = uniform_matrix(6, 6, 0.4, random);
  using Function = std::function<double(const Matrix&, Matrix&)>;
  const Function functions[] = {
      [](const Matrix& a, Matrix& g) { return log_det_acyclicity(a, 0.9, g); },
      trace_exponential_acyclicity};
  for (const Function& function : functions) {
    Matrix gradient, unused;
    EXPECT_GT(function(weights, gradient), 0);
    const Matrix expected = finite_differences<Matrix>(
        [&](const Matrix& point) { return function(point, unused); }, weights);
    EXPECT_LT((gradient - expected).cwiseAbs().maxCoeff(), 1e-8);
  }
}

TEST(Acyclicity, IsZeroOnAcyclicGraphsAlone) {
  RandomStream random(5);
  Matrix weights = uniform_matrix(8, 8, 2, random).triangularView<Eigen::StrictlyUpper>();
  Matrix gradient;
  EXPECT_NEAR(log_det_acyclicity(weights, 0.7, gradient), 0, 1e-10);
  EXPECT_EQ(gradient.cwiseAbs().maxCoeff(), 0);
  EXPECT_NEAR(trace_exponential_acyclicity(weights, gradient), 0, 1e-10);
  EXPECT_EQ(gradient.cwiseAbs().maxCoeff(), 0);

  weights(7, 0) = 1e-3;
  EXPECT_GT(log_det_acyclicity(weights, 0.7, gradient), 1e-7);
  EXPECT_GT(trace_exponential_acyclicity(weights, gradient), 1e-7);
  weights(7, 0) = 3;
  EXPECT_TRUE(std::isinf(log_det_acyclicity(weights, 0.7, gradient)));
}

}  // namespace
}  // namespace nsimplex::causal

#include "causal/structure/additive_search.h"

#include <gtest/gtest.h>

#include "support/random.h"

namespace nsimplex::causal {
namespace {

Vector draws(int64_t count) {
  RandomStream random(3);
  return Vector::NullaryExpr(count, [&] { return random.normal(); });
}

// The part of the values that the basis and a constant do not span.
double left_of(const Vector& values, const Eigen::MatrixXd& basis) {
  const Vector centred = values.array() - values.mean();
  return (centred - basis * (basis.transpose() * centred)).norm() / centred.norm();
}

TEST(SplineBasis, IsOrthonormalAndCentred) {
  const Eigen::MatrixXd basis = spline_basis(draws(300), 5);
  ASSERT_EQ(basis.cols(), 7);
  EXPECT_LT((basis.transpose() * basis - Eigen::MatrixXd::Identity(7, 7)).norm(), 1e-12);
  EXPECT_LT(basis.colwise().sum().norm(), 1e-10);
}

TEST(SplineBasis, SpansEveryCubicAndSplinesWithTheKnots) {
  const Vector x = draws(300);
  const Eigen::MatrixXd basis = spline_basis(x, 2);
  EXPECT_LT(left_of(x.array().cube() - 2 * x.array().square() + x.array(), basis), 1e-10);
  // One knot lies at the median, and a cubic that starts there is in the span.
  Vector sorted = x;
  std::sort(sorted.begin(), sorted.end());
  const double knot = sorted[299 / 2];
  EXPECT_LT(left_of((x.array() - knot).max(0).cube(), basis), 1e-10);
  EXPECT_GT(left_of((x.array() - knot - 0.5).max(0).cube(), basis), 1e-3);
}

TEST(SplineBasis, HasNoMoreColumnsThanValuesDiffer) {
  Vector three = Vector::Zero(50);
  three.head(20).setOnes();
  three.head(5).setConstant(2);
  const Eigen::MatrixXd basis = spline_basis(three, 5);
  EXPECT_EQ(basis.cols(), 2);
  EXPECT_LT(left_of((three.array() == 1).cast<double>(), basis), 1e-10);
  EXPECT_EQ(spline_basis(Vector::Ones(9), 3).cols(), 0);
}

}  // namespace
}  // namespace nsimplex::causal

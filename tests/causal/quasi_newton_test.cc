#include "causal/structure/quasi_newton.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "causal/structure/lasso.h"
#include "finite_differences.h"

namespace nsimplex::causal {
namespace {

using test::finite_differences;
using test::uniform_matrix;

Matrix some_covariance(int64_t features, uint64_t seed) {
  RandomStream random(seed);
  const Matrix table = uniform_matrix(3 * features, features, 1, random);
  return table.transpose() * table / static_cast<double>(table.rows());
}

TEST(QuasiNewton, FindsTheBottomOfRosenbrocksValley) {
  const auto valley = [](const Vector& x, Vector& gradient) {
    const double rise = x[1] - x[0] * x[0];
    gradient.resize(2);
    gradient << -400 * rise * x[0] - 2 * (1 - x[0]), 200 * rise;
    return 100 * rise * rise + (1 - x[0]) * (1 - x[0]);
  };
  Vector point(2);
  point << -1.2, 1;
  EXPECT_NEAR(minimise(valley, Vector::Zero(2), point, {.tolerance = 1e-14}), 0, 1e-10);
  EXPECT_NEAR(point[0], 1, 1e-4);
  EXPECT_NEAR(point[1], 1, 1e-4);
}

TEST(QuasiNewton, SoftThresholdsWhatIsSeparable) {
  Vector centre(5), l1(5), expected(5);
  centre << 2, -2, 0.3, -0.3, 5;
  l1 << 0.5, 0.5, 0.5, 0.5, 0;
  expected << 1.5, -1.5, 0, 0, 5;
  Vector point = Vector::Constant(5, -1);
  minimise(
      [&](const Vector& x, Vector& gradient) {
        gradient = x - centre;
        return gradient.squaredNorm() / 2;
      },
      l1, point);
  EXPECT_LT((point - expected).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_EQ(point[2], 0);
  EXPECT_EQ(point[3], 0);
}

TEST(QuasiNewton, StaysInTheDomain) {
  // x - log x, from far away: full steps would leave x > 0.
  const auto barrier = [](const Vector& x, Vector& gradient) {
    gradient = Vector::Constant(1, 1 - 1 / x[0]);
    return x[0] > 0 ? x[0] - std::log(x[0]) : std::numeric_limits<double>::infinity();
  };
  Vector point = Vector::Constant(1, 0.01);
  EXPECT_NEAR(minimise(barrier, Vector::Zero(1), point), 1, 1e-6);
}

TEST(QuasiNewton, CheckpointEndsIt) {
  Vector point = Vector::Ones(1);
  const auto parabola = [](const Vector& x, Vector& gradient) {
    gradient = x;
    return x.squaredNorm() / 2;
  };
  EXPECT_THROW(minimise(parabola, Vector::Zero(1), point,
                        {.checkpoint = [] { throw std::runtime_error("enough"); }}),
               std::runtime_error);
}

TEST(LeastSquares, IsTheTracesAndItsGradient) {
  const int64_t features = 9;
  const Matrix covariance = some_covariance(features, 1);
  RandomStream random(2);
  // Effects of many candidates and of few take different ways through the code.
  const CandidateEdges edges({}, features, [](int64_t cause, int64_t effect) {
    return effect % 2 == 0 || cause == (effect + 1) % 9;
  });
  LeastSquares loss(covariance, edges);
  Vector weights = uniform_matrix(edges.size(), 1, 1, random), gradient, unused;
  weights[1] = 0;
  const Matrix rest = Matrix::Identity(features, features) - edges.matrix(weights);
  EXPECT_NEAR(loss(weights, gradient), (rest.transpose() * covariance * rest).trace() / 2, 1e-12);
  const Vector expected =
      finite_differences<Vector>([&](const Vector& point) { return loss(point, unused); }, weights);
  EXPECT_LT((gradient - expected).cwiseAbs().maxCoeff(), 1e-8);
}

TEST(Lasso, SolvesWhatTheQuasiNewtonMethodSolves) {
  const int64_t features = 12, effect = 4;
  const Matrix covariance = some_covariance(features, 3);
  const CandidateEdges edges({}, features, [](int64_t, int64_t to) { return to == effect; });
  std::vector<int64_t> causes;
  for (int64_t k = 0; k < edges.size(); ++k) causes.push_back(edges.cause(k));
  Lasso lasso(covariance, effect, causes);
  LeastSquares loss(covariance, edges);
  for (const double sparsity : {0.1, 0.02, 0.0}) {  // each from the answer before
    const Vector l1 = edges.penalties(sparsity);
    Vector expected = Vector::Zero(edges.size()), gradient;
    minimise([&](const Vector& point, Vector& slope) { return loss(point, slope); }, l1, expected,
             {.tolerance = 1e-14});
    const Vector found = lasso.solve(l1);
    EXPECT_LT((found - expected).cwiseAbs().maxCoeff(), 1e-5) << sparsity;
    // Half the variance is this column's part of the loss; the others keep theirs.
    const double others = (covariance.trace() - covariance(effect, effect)) / 2;
    EXPECT_NEAR(lasso.variance() / 2, loss(found, gradient) - others, 1e-12);
  }
}

}  // namespace
}  // namespace nsimplex::causal

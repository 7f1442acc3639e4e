// Linear models that stand beside the others: right on what is linear, and their strength is chosen.
#include "train/feature_training.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace nsimplex::training {
namespace {

using at::Tensor;

// Columns of very different scales, and a constant one.
Tensor columns(int64_t rows) {
  at::manual_seed(11);
  Tensor x = at::randn({rows, 5}, at::kDouble);
  x.select(1, 1).mul_(1000).add_(5);
  x.select(1, 4).fill_(3);
  return x;
}

TEST(LinearReferences, LogisticRegressionFindsClassesThatPlanesSeparate) {
  const Tensor x = columns(300);
  const Tensor score = x.select(1, 0) + (x.select(1, 1) - 5) / 1000;
  const Tensor labels = score.gt(0.7).to(at::kLong) + score.gt(-0.7).to(at::kLong);
  const auto found =
      logistic_regression(x.narrow(0, 0, 200), labels.narrow(0, 0, 200), 3, x.narrow(0, 200, 100));
  const Tensor right = found.answers.eq(labels.narrow(0, 200, 100));
  EXPECT_GT(right.to(at::kDouble).mean().item<double>(), 0.93);
  EXPECT_LT(found.strength, 0.1);
  const Tensor noise = at::randint(2, {200}, at::kLong);
  EXPECT_GE(logistic_regression(x.narrow(0, 0, 200), noise, 2, x).strength, 0.1);
}

// Fewer rows of a class than parts, and a caller who ends it between two fits.
TEST(LinearReferences, LogisticRegressionIsTheSameTwiceAndTakesFewRows) {
  const Tensor x = columns(12), labels = at::arange(12, at::kLong).remainder(5);
  const auto once = logistic_regression(x, labels, 5, x),
             again = logistic_regression(x, labels, 5, x);
  EXPECT_TRUE(once.answers.equal(again.answers));
  int64_t asked = 0;
  struct Stop {};
  EXPECT_THROW(logistic_regression(x, labels, 5, x,
                                   [&] {
                                     if (++asked == 3) throw Stop();
                                   }),
               Stop);
}

TEST(LinearReferences, RidgeRegressionFindsALineAndShrinksNoise) {
  const Tensor x = columns(120), truth = 4 + 2 * x.select(1, 0) - 0.001 * x.select(1, 1);
  const auto found =
      ridge_regression(x.narrow(0, 0, 80), truth.narrow(0, 0, 80), x.narrow(0, 80, 40));
  EXPECT_LT((found.answers - truth.narrow(0, 80, 40)).abs().max().item<double>(), 1e-3);
  EXPECT_LT(found.strength, 1e-4);
  const Tensor noise = at::randn({80}, at::kDouble);
  EXPECT_GE(ridge_regression(x.narrow(0, 0, 80), noise, x).strength, 0.1);
}

// The error of rows that are left out, one by one, is what a fit without each has.
TEST(LinearReferences, RidgeRegressionChoosesByRowsThatAreLeftOut) {
  const Tensor x = columns(20), y = x.select(1, 0) + at::randn({20}, at::kDouble);
  const Tensor scaled = (x - x.mean(0)) / x.std(0, false).masked_fill(x.std(0, false).eq(0), 1);
  double least = 1e300, best = 0;
  for (double strength = 100; strength > 0.5e-5; strength /= 10) {
    double error = 0;
    for (int64_t out = 0; out < 20; ++out) {
      const Tensor in = at::arange(20).ne(out).nonzero().squeeze(1);
      // A bias that is not penalised; the penalty is that of all 20 rows.
      const Tensor design = at::cat({scaled, at::ones({20, 1}, at::kDouble)}, 1),
                   a = design.index_select(0, in);
      Tensor penalty = at::eye(6, at::kDouble) * (20 * strength);
      penalty[5][5].fill_(1e-12);
      const Tensor w = at::linalg_solve(a.t().mm(a) + penalty, a.t().mv(y.index_select(0, in)));
      error += (design[out].dot(w) - y[out]).square().item<double>();
    }
    if (error < least) {
      least = error;
      best = strength;
    }
  }
  EXPECT_DOUBLE_EQ(ridge_regression(x, y, x).strength, best);
}

TEST(LinearReferences, MoreColumnsThanRowsAreNoFault) {
  const Tensor x = at::randn({10, 40}, at::kDouble), y = x.select(1, 0).clone();
  EXPECT_TRUE(ridge_regression(x, y, x).answers.isfinite().all().item<bool>());
  EXPECT_EQ(logistic_regression(x, y.gt(0).to(at::kLong), 2, x).answers.size(0), 10);
}

}  // namespace
}  // namespace nsimplex::training

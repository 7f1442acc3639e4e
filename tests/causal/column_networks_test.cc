#include "causal/structure/column_networks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "causal/structure/estimators.h"
#include "finite_differences.h"
#include "made_tables.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

using test::finite_differences;
using test::uniform_matrix;

constexpr int64_t kFeatures = 3, kHidden = 2;
constexpr int64_t kUnits = kFeatures * kHidden, kFirst = kUnits * kFeatures;

Matrix all_but_loops() {
  return Matrix::Ones(kFeatures, kFeatures) - Matrix::Identity(kFeatures, kFeatures);
}

TEST(ColumnNetworks, LossIsItsDefinitionAndItsGradient) {
  RandomStream random(1);
  const Matrix table = uniform_matrix(20, kFeatures, 2, random);
  const TableView view(table.data(), table.rows(), table.cols());
  const ColumnNetworks networks(view, kHidden, all_but_loops());
  Vector point = uniform_matrix(kFirst + 2 * kUnits + kFeatures, 1, 1, random);
  point.head(kFirst).array() *= networks.first_layer(all_but_loops()).head(kFirst).array();

  double square = 0;
  for (int64_t row = 0; row < table.rows(); ++row) {
    for (int64_t column = 0; column < kFeatures; ++column) {
      double found = point[kFirst + 2 * kUnits + column];
      for (int64_t unit = column * kHidden; unit < (column + 1) * kHidden; ++unit) {
        double input = point[kFirst + unit];
        for (int64_t cause = 0; cause < kFeatures; ++cause) {
          input += point[unit * kFeatures + cause] * table(row, cause);
        }
        found += point[kFirst + kUnits + unit] / (1 + std::exp(-input));
      }
      square += (table(row, column) - found) * (table(row, column) - found);
    }
  }
  Vector gradient, unused;
  EXPECT_NEAR(networks.loss(point, gradient), 1.5 * std::log(square / 20), 1e-12);
  Vector expected = finite_differences<Vector>(
      [&](const Vector& at) { return networks.loss(at, unused); }, point);
  // What cannot be an edge has no gradient.
  expected.head(kFirst).array() *= networks.first_layer(all_but_loops()).head(kFirst).array();
  EXPECT_LT((gradient - expected).cwiseAbs().maxCoeff(), 1e-7);
}

TEST(ColumnNetworks, StrengthsAreNormsOfTheFirstLayer) {
  const Matrix table = Matrix::Zero(2, kFeatures);
  const ColumnNetworks networks({table.data(), 2, kFeatures}, kHidden, all_but_loops());
  EXPECT_EQ(networks.strengths(networks.start(1)).norm(), 0);
  Matrix edges = Matrix::Zero(kFeatures, kFeatures);
  edges(0, 2) = 3;
  const Vector point = networks.first_layer(edges);
  EXPECT_NEAR(networks.strengths(point)(0, 2), 3 * std::sqrt(2.0), 1e-12);
  EXPECT_EQ((networks.strengths(point).array() != 0).count(), 1);
}

TEST(FitLogdetNetworks, FindsWhatNoLineShows) {
  // x_2 = (x_0^2 - 1) 1.5 + x_1 + noise: the correlation of x_0 and x_2 is nothing.
  RandomStream random(5);
  Matrix table(600, 3);
  for (int64_t row = 0; row < table.rows(); ++row) {
    table(row, 0) = random.normal();
    table(row, 1) = random.normal();
    table(row, 2) = 1.5 * (table(row, 0) * table(row, 0) - 1) + table(row, 1) + random.normal();
  }
  CausalFitOptions options;
  const TableView view(table.data(), table.rows(), table.cols());
  const Structure found = fit_logdet_networks(view, options);
  EXPECT_GT(found.weights(0, 2), 0.3);
  EXPECT_GT(found.weights(1, 2), 0.3);
  EXPECT_LT(found.weights(2, 0), 0.2);
  EXPECT_LT(found.weights(2, 1), 0.2);
  EXPECT_LT(std::abs(fit_logdet(view, options).weights(0, 2)), 0.2);

  options.constraints.forbidden = {{0, 2}};
  EXPECT_EQ(fit_logdet_networks(view, options).weights(0, 2), 0);
}

}  // namespace
}  // namespace nsimplex::causal

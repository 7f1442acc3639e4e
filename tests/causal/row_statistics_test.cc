#include "causal/structure/row_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "causal/structure/linear_order.h"
#include "made_tables.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

using test::linear_table;
using test::MadeTable;
using test::random_weights;
using test::wrong_pairs;

TableView view(const Matrix& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }

// Rows of the model with do(column = noise of this deviation about 1) in every third row, for the
// columns in turn; or with other noise in these rows, if the intervention is soft.
MadeTable with_interventions(const Matrix& weights, int64_t rows, uint64_t seed, bool soft,
                             std::vector<std::vector<int64_t>>& targets) {
  RandomStream random(seed);
  MadeTable made{weights, Matrix(rows, weights.rows())};
  targets.assign(static_cast<size_t>(rows), {});
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t target = row % 3 == 0 ? row / 3 % weights.rows() : -1;
    if (target >= 0) targets[static_cast<size_t>(row)].push_back(target);
    for (int64_t column = 0; column < weights.cols(); ++column) {
      const double causes = made.table.row(row).head(column).dot(weights.col(column).head(column));
      const double noise = random.normal();
      made.table(row, column) = column != target ? causes + noise
                                : soft           ? causes + 2 + 3 * noise
                                                 : 1 + 2 * noise;
    }
  }
  for (int64_t column = 0; column < weights.cols(); ++column) {
    made.table.col(column) *= std::exp2(random.below(7) - 3);  // units that say nothing
  }
  return made;
}

TEST(RowStatistics, CentresWithinGroups) {
  const MadeTable made = linear_table(random_weights(6, 1), 60, 2);
  Matrix moved = made.table;
  std::vector<int64_t> groups;
  for (int64_t row = 0; row < 60; ++row) {
    groups.push_back(7 - row % 3);
    moved.row(row).array() += 100.0 * static_cast<double>(row % 3);
  }
  CausalFitOptions options{.groups = groups};
  const Matrix plain = RowStatistics(made.view(), options).covariances().all.matrix;
  const RowStatistics found(view(moved), options);
  EXPECT_LT((found.covariances().all.matrix - plain).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_EQ(found.covariances().all.observations, 58);
  // By the definition.
  const Matrix centred = without_groups(view(moved), numbered_groups(groups, 60));
  EXPECT_LT((centred.transpose() * centred / 60 - plain).cwiseAbs().maxCoeff(), 1e-10);
}

TEST(RowStatistics, GroupsHideNothingElse) {
  const Matrix weights = random_weights(8, 3);
  MadeTable made = linear_table(weights, 600, 4);
  CausalFitOptions options;
  RandomStream random(5);
  Matrix effects(20, 8);
  for (double& effect : effects.reshaped()) effect = 10 * random.normal();
  for (int64_t row = 0; row < 600; ++row) {
    options.groups.push_back(row % 20);
    made.table.row(row) += effects.row(row % 20);
  }
  EXPECT_GT(wrong_pairs(fit_order(made.view(), {}).weights, weights), 3);
  const Matrix centred = without_groups(made.view(), options.groups);
  EXPECT_EQ(wrong_pairs(fit_order(view(centred), options).weights, weights), 0);
}

TEST(RowStatistics, LeavesOutRowsWithInterventions) {
  std::vector<std::vector<int64_t>> targets;
  const MadeTable made = with_interventions(random_weights(5, 6), 90, 7, false, targets);
  const RowStatistics found(made.view(), {.targets = targets});
  const Covariances& covariances = found.covariances();
  Matrix rows(84, 5);
  int64_t count = 0;
  for (int64_t row = 0; row < 90; ++row) {
    if (targets[static_cast<size_t>(row)] != std::vector<int64_t>{2}) {
      rows.row(count++) = made.table.row(row);
    }
  }
  ASSERT_EQ(count, 84);
  const Covariance expected = covariance_of(view(rows));
  EXPECT_LT((covariances.of(2).matrix - expected.matrix).cwiseAbs().maxCoeff(),
            1e-10 * expected.matrix.maxCoeff());
  EXPECT_EQ(covariances.of(2).observations, 84);
  EXPECT_EQ(covariances.targets.size(), 5u);
  EXPECT_EQ(covariances.start().observations, 60);
}

// A chain in units that say nothing.
TEST(RowStatistics, InterventionsTellDirections) {
  Matrix weights = Matrix::Zero(6, 6);
  for (int64_t k = 0; k + 1 < 6; ++k) weights(k, k + 1) = k % 2 == 0 ? 1.2 : -0.9;
  for (const bool soft : {false, true}) {
    int64_t wrong = 0;
    for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
      std::vector<std::vector<int64_t>> targets;
      const MadeTable made = with_interventions(weights, 900, seed, soft, targets);
      wrong +=
          wrong_pairs(fit_order(made.view(), {.targets = targets, .soft = soft}).weights, weights);
    }
    EXPECT_EQ(wrong, 0) << soft;
  }
}

TEST(RowStatistics, SoftInterventionsKeepTheirOwnVariance) {
  Matrix weights = Matrix::Zero(2, 2);
  weights(0, 1) = 1;
  std::vector<std::vector<int64_t>> targets;
  const MadeTable made = with_interventions(weights, 6000, 3, true, targets);
  RowStatistics found(made.view(), {.targets = targets, .soft = true});
  const Matrix fitted = fit_order(made.view(), {.targets = targets, .soft = true}).weights;
  found.weigh(fitted);
  // What is left of the effect is the noise of the rows without intervention.
  const double scale = fitted(0, 1);
  const Matrix& own = found.covariances().of(1).matrix;
  const double left = own(1, 1) - scale * own(0, 1);
  double squares = 0;
  for (int64_t row = 0; row < 6000; ++row) {
    if (!targets[static_cast<size_t>(row)].empty()) continue;
    squares += std::pow(made.table(row, 1) - scale * made.table(row, 0), 2);
  }
  EXPECT_NEAR(left / (squares / 4000), 1, 0.05);
}

TEST(RowStatistics, RefusesWhatRowsDoNotTell) {
  const MadeTable made = linear_table(random_weights(6, 8), 10, 9);
  const auto fails = [&](const CausalFitOptions& options) {
    EXPECT_THROW(RowStatistics(made.view(), options), InputError);
  };
  fails({.groups = {1, 2}});
  fails({.groups = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}});
  fails({.targets = {{1}, {2}}});
  fails({.targets = std::vector<std::vector<int64_t>>(10, {6})});
  fails({.targets = std::vector<std::vector<int64_t>>(10, {1})});
}

}  // namespace
}  // namespace nsimplex::causal

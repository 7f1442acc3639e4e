#include "causal/structure/estimators.h"

#include <gtest/gtest.h>

#include "causal/structure/acyclicity.h"
#include "made_tables.h"

namespace nsimplex::causal {
namespace {

using test::linear_table;
using test::MadeTable;
using test::random_weights;
using test::wrong_pairs;

using Fit = Structure (*)(TableView, const CausalFitOptions&);

struct Estimator {
  const char* name;
  Fit fit;
  double threshold;
  int64_t wrong;  ///< pairs that it may miss of three graphs of 24 edges
};

constexpr Estimator kEstimators[] = {
    {"logdet", fit_logdet, 0.2, 0},
    {"notears", fit_notears, 0.2, 15},
    {"spectral", fit_spectral, 0.2, 5},
    {"lowrank", fit_lowrank, 0.2, 45},
};

Matrix above(const Matrix& weights, double threshold) {
  return (weights.array().abs() < threshold).select(0, weights);
}

TEST(CandidateEdges, LeaveOutWhatWouldCloseACycle) {
  const EdgeConstraints constraints{.forbidden = {{3, 0}}, .required = {{0, 1}, {1, 2}}};
  const CandidateEdges edges(constraints, 4);
  const Matrix taken = edges.matrix(Vector::Ones(edges.size()));
  Matrix expected = Matrix::Ones(4, 4) - Matrix::Identity(4, 4);
  expected(3, 0) = expected(1, 0) = expected(2, 1) = expected(2, 0) = 0;
  EXPECT_EQ(taken, expected);
  EXPECT_EQ(edges.weights(taken), Vector::Ones(edges.size()));
  const Matrix penalties = edges.matrix(edges.penalties(0.5));
  EXPECT_EQ(penalties(0, 1), 0);
  EXPECT_EQ(penalties(1, 2), 0);
  EXPECT_EQ(penalties(0, 3), 0.5);
  // A filter takes no required edge away.
  EXPECT_EQ(CandidateEdges(constraints, 4, [](int64_t, int64_t) { return false; }).size(), 2);
}

TEST(Estimators, FindGraphsOfEqualVariances) {
  for (const Estimator& estimator : kEstimators) {
    int64_t wrong = 0;
    for (const uint64_t seed : {1u, 2u, 3u}) {
      const MadeTable made = linear_table(random_weights(12, seed), 1000, seed + 100);
      const Structure found = estimator.fit(made.view(), {});
      wrong += wrong_pairs(above(found.weights, estimator.threshold), made.weights);
      EXPECT_EQ(found.scores, found.weights.cwiseAbs()) << estimator.name;
    }
    EXPECT_LE(wrong, estimator.wrong) << estimator.name;
  }
}

TEST(Estimators, StartFromAnOrderThatNeedsFewRows) {
  // 400 edges. The order that conditions on all placed columns leads to far more errors.
  const MadeTable made = linear_table(random_weights(200, 5), 150, 6);
  const auto wrong = [&](Fit fit) {
    return wrong_pairs(above(fit(made.view(), {}).weights, 0.2), made.weights);
  };
  EXPECT_LE(wrong(fit_logdet), 120);
  EXPECT_LE(wrong(fit_spectral), 80);
}

TEST(Estimators, HoldToConstraints) {
  const MadeTable made = linear_table(random_weights(8, 9), 500, 10);
  // Against the truth, where causes come first.
  CausalFitOptions options;
  options.constraints = {
      .forbidden = {{0, 7}}, .required = {{5, 2}}, .tiers = {1, 0, 1, 0, 1, 0, 1, 1}};
  for (const Estimator& estimator : kEstimators) {
    const Structure found = estimator.fit(made.view(), options);
    for (int64_t cause = 0; cause < 8; ++cause) {
      for (int64_t effect = 0; effect < 8; ++effect) {
        const bool backwards = options.constraints.tiers[static_cast<size_t>(cause)] >
                               options.constraints.tiers[static_cast<size_t>(effect)];
        if (backwards || cause == effect) {
          EXPECT_EQ(found.weights(cause, effect), 0) << estimator.name;
        }
      }
    }
    EXPECT_EQ(found.weights(0, 7), 0) << estimator.name;
    EXPECT_EQ(found.weights(2, 5), 0) << estimator.name;
    EXPECT_NE(found.weights(5, 2), 0) << estimator.name;
  }
}

TEST(Estimators, SparsityIsTheUsersToChoose) {
  const MadeTable made = linear_table(random_weights(8, 3), 500, 4);
  for (const Estimator& estimator : kEstimators) {
    CausalFitOptions options;
    options.sparsity = 1e6;
    EXPECT_LT(estimator.fit(made.view(), options).weights.cwiseAbs().maxCoeff(), 0.05)
        << estimator.name;
  }
}

TEST(Estimators, CheckpointEndsThem) {
  const MadeTable made = linear_table(random_weights(6, 3), 200, 4);
  CausalFitOptions options;
  options.checkpoint = [] { throw std::runtime_error("enough"); };
  for (const Estimator& estimator : kEstimators) {
    EXPECT_THROW(estimator.fit(made.view(), options), std::runtime_error) << estimator.name;
  }
}

}  // namespace
}  // namespace nsimplex::causal

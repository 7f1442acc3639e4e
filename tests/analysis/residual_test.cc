#include "analysis/residual.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/random.h"

namespace nsimplex::analysis {
namespace {

TokenMatrix any_tokens(int64_t n, int64_t d, uint64_t seed, double outlier = 1) {
  RandomStream random(seed);
  TokenMatrix tokens = TokenMatrix::NullaryExpr(n, d, [&] { return 2 * random.unit() - 1; });
  tokens.row(0) *= outlier;
  return tokens;
}

double norm_at(const TokenMatrix& tokens, const Eigen::VectorXd& offset) {
  return residual_norms(tokens, offset).composite();
}

void expect_certified(const TokenMatrix& tokens, const ResidualMinimum& found) {
  EXPECT_NEAR(norm_at(tokens, found.offset), found.norm, 1e-12 * found.norm);
  EXPECT_LE(found.lower, found.norm);
  EXPECT_GE(found.lower, (1 - 1e-7) * found.norm) << found.programmes << " programmes";
}

TEST(MinimalResidual, IsCertifiedForManyShapes) {
  int64_t most = 0;
  uint64_t seed = 0;
  for (const int64_t n : {2, 3, 5, 8, 16}) {
    for (const int64_t d : {1, 2, 3, 8, 16}) {
      for (const double outlier : {1.0, 30.0}) {
        const TokenMatrix tokens = any_tokens(n, d, ++seed, outlier);
        const ResidualMinimum found = minimal_residual(tokens);
        expect_certified(tokens, found);
        const Eigen::VectorXd mean = tokens.colwise().mean();
        EXPECT_LE(found.norm, norm_at(tokens, mean) * (1 + 1e-7));
        most = std::max<int64_t>(most, found.programmes);
      }
    }
  }
  EXPECT_LT(most, 60);
}

// In one dimension the offset can be tried out.
TEST(MinimalResidual, OfOneChannelIsThatOfTheBestOffset) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TokenMatrix tokens = any_tokens(7, 1, seed, 3);
    double least = std::numeric_limits<double>::infinity();
    for (double u = -3; u <= 3; u += 1e-4) {
      least = std::min(least, norm_at(tokens, Eigen::VectorXd::Constant(1, u)));
    }
    const double found = minimal_residual(tokens).norm;
    EXPECT_LE(found, least * (1 + 1e-9));
    EXPECT_GE(found, least * (1 - 1e-3));
  }
}

// No descent from anywhere gets below: random offsets and small moves of the best.
TEST(MinimalResidual, NoOffsetStaysBelow) {
  RandomStream random(5);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const TokenMatrix tokens = any_tokens(6, 3, seed);
    const ResidualMinimum found = minimal_residual(tokens);
    for (int i = 0; i < 2000; ++i) {
      const double reach = std::pow(10, -6 * random.unit());
      const Eigen::VectorXd move =
          Eigen::VectorXd::NullaryExpr(3, [&] { return reach * (2 * random.unit() - 1); });
      EXPECT_GE(norm_at(tokens, found.offset + move), found.lower * (1 - 1e-12));
    }
  }
}

TEST(MinimalResidual, ScalesAndShifts) {
  const TokenMatrix tokens = any_tokens(6, 4, 3);
  const double norm = minimal_residual(tokens).norm;
  EXPECT_NEAR(minimal_residual(1e-200 * tokens).norm, 1e-200 * norm, 1e-206);
  EXPECT_NEAR(minimal_residual(tokens.array() + 7).norm, norm, 1e-6 * norm);
}

// Two tokens: every u between them leaves rows r, D - r and columns |x_1j - x_2j|.
TEST(MinimalResidual, OfTwoTokensInClosedForm) {
  const TokenMatrix tokens = any_tokens(2, 5, 9);
  const auto distance = (tokens.row(0) - tokens.row(1)).cwiseAbs();
  EXPECT_NEAR(minimal_residual(tokens).norm, std::sqrt(distance.maxCoeff() * distance.sum() / 2),
              1e-7);
}

TEST(MinimalResidual, IsZeroOfEqualTokens) {
  EXPECT_EQ(minimal_residual(TokenMatrix::Constant(4, 3, 2.5)).norm, 0);
  EXPECT_EQ(minimal_residual(any_tokens(1, 3, 1)).norm, 0);
  EXPECT_EQ(minimal_residual(TokenMatrix(0, 3)).norm, 0);
  EXPECT_EQ(minimal_residual(TokenMatrix(3, 0)).norm, 0);
}

TEST(MinimalResidual, RefusesWhatIsNotFinite) {
  TokenMatrix tokens = any_tokens(3, 3, 1);
  tokens(1, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(minimal_residual(tokens), std::invalid_argument);
}

TEST(WeightedResidual, IsBoundedFromBothSides) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TokenMatrix tokens = any_tokens(9, 4, seed);
    for (const double weight : {1e-3, 1.0, 1e3}) {
      const WeightedResidual found = weighted_residual(tokens, weight, 1 / weight);
      const double value = weight * found.norms.columns + found.norms.rows / weight;
      EXPECT_LE(found.lower, value * (1 + 1e-14));
      EXPECT_GE(found.lower, value * (1 - 1e-8));
    }
  }
}

}  // namespace
}  // namespace nsimplex::analysis

#include "causal/tables/kinds_of_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace nsimplex::causal {
namespace {

using testing::ElementsAre;
using enum ColumnKind;

Matrix columns_of(int64_t rows, const std::vector<std::function<double(std::mt19937&)>>& draws) {
  std::mt19937 random(7);
  Matrix table(rows, std::ssize(draws));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < table.cols(); ++j) {
      table(row, j) = draws[static_cast<size_t>(j)](random);
    }
  }
  return table;
}

std::vector<ColumnKind> kinds_in(const Matrix& table) {
  return kinds_of_values({table.data(), table.rows(), table.cols()});
}

double whole(double low, double high, std::mt19937& random) {
  return std::floor(std::uniform_real_distribution(low, high + 1)(random));
}

const auto kNormal = [](std::mt19937& random) { return std::normal_distribution()(random); };

TEST(KindsOfValues, TakesKindsFromValues) {
  const Matrix table =
      columns_of(400, {kNormal, [](auto& random) { return 3 * whole(0, 1, random); },
                       [](auto& random) { return whole(0, 2, random); },
                       [](auto& random) { return double(std::poisson_distribution(1.0)(random)); },
                       [](auto& random) { return double(std::poisson_distribution(6.0)(random)); },
                       [](auto& random) { return whole(18, 40, random); },   // ages
                       [](auto& random) { return whole(1, 5, random); },     // answers from 1 to 5
                       [](auto& random) { return whole(0, 5000, random); },  // many values
                       [](auto& random) { return whole(0, 2, random) / 2; }});  // 0, 0.5 and 1
  EXPECT_THAT(kinds_in(table), ElementsAre(continuous, binary, category, count, count, continuous,
                                           continuous, continuous, continuous));
}

TEST(KindsOfValues, TakesNoKindsWithFewRowsOrRareValues) {
  const auto coin = [](auto& random) { return whole(0, 1, random); };
  EXPECT_TRUE(kinds_in(columns_of(49, {kNormal, coin})).empty());
  EXPECT_FALSE(kinds_in(columns_of(50, {kNormal, coin})).empty());
  Matrix rare = columns_of(400, {kNormal, coin});
  rare.col(1).setZero();
  rare.col(1).head(4).setOnes();
  EXPECT_TRUE(kinds_in(rare).empty());
  EXPECT_TRUE(kinds_in(columns_of(400, {kNormal, kNormal})).empty());
}

}  // namespace
}  // namespace nsimplex::causal

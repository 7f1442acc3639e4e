#include "causal/structure/curved_effects.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace nsimplex::causal {
namespace {

// x and y = effect(x) + noise of a hundredth.
Matrix pair_of(int64_t rows, const std::function<double(double)>& effect) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  Matrix table(rows, 2);
  for (int64_t row = 0; row < rows; ++row) {
    table(row, 0) = normal(random);
    table(row, 1) = effect(table(row, 0)) + 0.1 * normal(random);
  }
  return table;
}

double p_value(const Matrix& table, const Matrix& graph) {
  return curvature_p_value({table.data(), table.rows(), table.cols()},
                           {graph.data(), graph.rows(), graph.cols()});
}

Matrix edge() {
  Matrix graph = Matrix::Zero(2, 2);
  graph(0, 1) = 1;
  return graph;
}

TEST(CurvedEffects, AreFoundWhereLinesDoNotFit) {
  EXPECT_LT(p_value(pair_of(200, [](double x) { return x + 0.2 * x * x; }), edge()), 1e-10);
  EXPECT_LT(p_value(pair_of(200, [](double x) { return std::sin(2 * x); }), edge()), 1e-10);
  EXPECT_GT(p_value(pair_of(200, [](double x) { return 3 * x; }), edge()), 0.05);
}

TEST(CurvedEffects, AreNotSeenWithoutCausesOrRows) {
  const auto square = [](double x) { return x * x; };
  EXPECT_EQ(p_value(pair_of(200, square), Matrix::Zero(2, 2)), 1);
  EXPECT_EQ(p_value(pair_of(8, square), edge()), 1);
}

TEST(CurvedEffects, HaveTheLevelOfTheTest) {
  int64_t below = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    Matrix table(50, 2);
    for (int64_t row = 0; row < 50; ++row) {
      table(row, 0) = std::exp(normal(random));
      table(row, 1) = table(row, 0) + normal(random);
    }
    below += p_value(table, edge()) < 0.1;
  }
  // Two columns share the level, and one of them has no causes.
  EXPECT_NEAR(static_cast<double>(below) / 400, 0.05, 0.03);
}

}  // namespace
}  // namespace nsimplex::causal

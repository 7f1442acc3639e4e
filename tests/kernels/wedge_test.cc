#include "kernels/cpu/shared/wedge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace nsimplex::kernels::dense {
namespace {

using Vector = std::vector<double>;

// The sum over all permutations: the definition.
double determinant(const std::vector<Vector>& columns) {
  const int size = static_cast<int>(columns.size());
  std::vector<int> row(size);
  std::iota(row.begin(), row.end(), 0);
  double sum = 0.0;
  do {
    int inversions = 0;
    double product = 1.0;
    for (int c = 0; c < size; ++c) {
      product *= columns[c][row[c]];
      for (int d = c + 1; d < size; ++d) inversions += row[d] < row[c];
    }
    sum += inversions % 2 == 0 ? product : -product;
  } while (std::next_permutation(row.begin(), row.end()));
  return sum;
}

TEST(Wedge, StepsEndInTheCofactorsOfTheLastColumn) {
  std::mt19937 generator(3);
  std::uniform_int_distribution<int> integer(-4, 4);  // exact in fp64 up to order 7
  for (int order = 2; order <= 7; ++order) {
    std::vector<Vector> columns(order + 1, Vector(order + 1));
    for (Vector& column : columns) {
      for (double& value : column) value = integer(generator);
    }
    Vector wedge = columns[0];
    const WedgeTable& table = wedge_table(order);
    ASSERT_EQ(table.steps.size(), static_cast<size_t>(order - 1));
    for (int p = 0; p < order - 1; ++p) {
      const WedgeStep& step = table.steps[p];
      Vector next(step.targets, 0.0);
      ASSERT_EQ(step.terms.size(), static_cast<size_t>(step.targets) * (p + 2));
      for (size_t t = 0; t < step.terms.size(); ++t) {
        const WedgeTerm& term = step.terms[t];
        EXPECT_EQ(term.target, static_cast<int>(t) / step.terms_each());
        next[term.target] += term.sign * wedge[term.source] * columns[p + 1][term.component];
      }
      wedge = next;
    }
    ASSERT_EQ(wedge.size(), columns[0].size());
    const double from_steps =
        std::inner_product(wedge.begin(), wedge.end(), columns[order].begin(), 0.0);
    EXPECT_EQ(from_steps, determinant(columns)) << order;
  }
}

TEST(Wedge, OrderTwoIsTheCrossProduct) {
  const WedgeStep& step = wedge_table(2).steps.front();
  double cross[3][3][3] = {};
  for (const WedgeTerm& t : step.terms) cross[t.target][t.source][t.component] += t.sign;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(cross[a][b][c], (b - a) * (c - a) * (c - b) / 2.0) << a << b << c;
      }
    }
  }
}

}  // namespace
}  // namespace nsimplex::kernels::dense

#include "causal/tables/few_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace nsimplex::causal {
namespace {

// A table of different numbers, whose second column has only this many.
std::string warning_of(int64_t rows, int64_t columns, int64_t second,
                       const std::vector<std::string>& names = {}) {
  Matrix table(rows, columns);
  std::iota(table.data(), table.data() + table.size(), 0.0);
  for (int64_t row = second; row < rows; ++row) table(row, 1) = std::nan("");
  return few_rows_warning({table.data(), rows, columns}, names);
}

TEST(FewRows, OfTheTable) {
  EXPECT_EQ(warning_of(2, 2, 2), "2 rows lie on a line, so edges from them mean nothing");
  EXPECT_EQ(warning_of(3, 4, 3), "3 rows for 4 columns: only strong effects can be found");
  EXPECT_EQ(warning_of(4, 4, 4), "");
}

TEST(FewRows, OfAColumnWithGaps) {
  EXPECT_EQ(warning_of(30, 3, 17),
            "column 1 has 17 values for 3 columns: with fewer than 18, its edges may be found by "
            "chance");
  EXPECT_EQ(warning_of(30, 3, 2, {"a", "\"b\"", "c"}),
            "column \"b\" has 2 values for 3 columns: with fewer than 18, its edges may be found "
            "by chance");
  EXPECT_EQ(warning_of(30, 3, 18), "");
  EXPECT_EQ(warning_of(17, 3, 17), "");  // no gaps
  EXPECT_EQ(warning_of(30, 3, 1), "");   // a fit refuses it
}

}  // namespace
}  // namespace nsimplex::causal

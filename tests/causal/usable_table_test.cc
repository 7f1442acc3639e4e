#include "causal/tables/usable_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "input_error_of.h"

namespace nsimplex::causal {
namespace {

const double kMissing = std::nan("");

Matrix rows_of(std::initializer_list<std::initializer_list<double>> rows) { return Matrix(rows); }

std::string error_of(const Matrix& table, const std::vector<std::string>& names,
                     const UsableRules& rules = {}) {
  return nsimplex::test::input_error_of([&] { usable_table(table, names, rules, "t.csv"); });
}

TEST(UsableTable, AWholeTableStaysAsItIs) {
  const Matrix table = rows_of({{1, 2}, {3, 5}});
  const UsableTable kept = usable_table(table, {"a", "b"}, {}, "t.csv");
  EXPECT_EQ(kept.values, table);
  EXPECT_EQ(kept.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(kept.columns, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(kept.dropped.empty());
  EXPECT_TRUE(usable_table(table, {}, {}, "t.npy").names.empty());
}

TEST(UsableTable, MissingValues) {
  const Matrix table = rows_of({{1, 2}, {kMissing, 5}, {4, kMissing}, {7, 8}});
  EXPECT_EQ(error_of(table, {"a", "b"}),
            "cannot use t.csv: 2 values are missing, the first in row 2, column \"a\"");
  EXPECT_EQ(error_of(rows_of({{1, 2}, {3, kMissing}}), {}),
            "cannot use t.csv: 1 value is missing, the first in row 2, column x1");
  const UsableTable rows = usable_table(table, {}, {.missing = MissingValues::rows}, "t.csv");
  EXPECT_EQ(rows.values, rows_of({{1, 2}, {7, 8}}));
  EXPECT_EQ(rows.dropped_rows, 2);
  EXPECT_EQ(rows.rows, (std::vector<int64_t>{0, 3}));
  const UsableTable means = usable_table(table, {}, {.missing = MissingValues::means}, "t.csv");
  EXPECT_EQ(means.values, rows_of({{1, 2}, {4, 5}, {4, 5}, {7, 8}}));
  EXPECT_EQ(means.filled, 2);
  EXPECT_EQ(means.rows, (std::vector<int64_t>{0, 1, 2, 3}));
  const Matrix holes = rows_of({{1, kMissing}, {2, kMissing}});
  EXPECT_EQ(error_of(holes, {}, {.missing = MissingValues::rows}),
            "cannot use t.csv: expected at least two rows without missing values, got 0");
  EXPECT_EQ(error_of(holes, {"a", "b"}, {.missing = MissingValues::means}),
            "cannot use t.csv: column \"b\" has no values");
}

TEST(UsableTable, GapsMayStay) {
  const Matrix table = rows_of({{1, 2}, {kMissing, 5}, {4, 4}});
  const UsableTable kept =
      usable_table(table, {"a", "b"}, {.missing = MissingValues::likelihood}, "t.csv");
  EXPECT_TRUE(std::isnan(kept.values(1, 0)));
  EXPECT_EQ(kept.values(2, 0), 4);
  EXPECT_EQ(kept.values.col(1), table.col(1));
  EXPECT_EQ(kept.dropped_rows + kept.filled, 0);
}

TEST(UsableTable, ColumnsThatSayNothing) {
  const Matrix table = rows_of({{1, 7, 1, 2, 1}, {3, 7, 3, 5, 3}, {0, 7, 0, 5, -1}});
  const std::vector<std::string> names{"a", "b", "c", "d", "e"};
  EXPECT_EQ(error_of(table, names), "cannot use t.csv: column \"b\" is constant");
  EXPECT_EQ(error_of(table(Eigen::all, std::vector<int>{0, 2, 3}), {"a", "c", "d"}),
            "cannot use t.csv: column \"c\" equals \"a\"");
  const UsableTable kept = usable_table(table, names, {.drop = true}, "t.csv");
  EXPECT_EQ(kept.names, (std::vector<std::string>{"a", "d", "e"}));
  EXPECT_EQ(kept.columns, (std::vector<int64_t>{0, 3, 4}));
  EXPECT_EQ(kept.dropped, (std::vector<std::string>{"\"b\": constant", "\"c\": equals \"a\""}));
  EXPECT_EQ(kept.values, table(Eigen::all, kept.columns));
  // The rounding of one place is no variation, at any scale.
  const Matrix nearly = rows_of({{0.1 * 3, 1, 2}, {0.3, 2, 1}, {0.3, 1, 1}});
  EXPECT_EQ(error_of(nearly, {}), "cannot use t.csv: column x0 is constant");
  EXPECT_EQ(error_of(1e-200 * nearly, {}), "cannot use t.csv: column x0 is constant");
  EXPECT_EQ(
      usable_table(1e-200 * nearly(Eigen::all, std::vector<int>{1, 2}), {}, {}, "t").columns.size(),
      2u);
  // A column without values goes, whatever is done about those of the others.
  const Matrix empty =
      rows_of({{1, kMissing, 2}, {kMissing, kMissing, 4}, {3, kMissing, 1}, {5, kMissing, 1}});
  for (const MissingValues missing : {MissingValues::means, MissingValues::rows}) {
    const UsableTable rest =
        usable_table(empty, {"a", "b", "c"}, {.missing = missing, .drop = true}, "t");
    EXPECT_EQ(rest.dropped, (std::vector<std::string>{"\"b\": no values"}));
    EXPECT_EQ(rest.columns, (std::vector<int64_t>{0, 2}));
  }
  EXPECT_EQ(error_of(rows_of({{1, 1}, {2, 2}}), {}, {.drop = true}),
            "cannot use t.csv: expected at least two columns that vary and differ, got 1");
}

TEST(UsableTable, TooFewAndTwiceNamed) {
  EXPECT_EQ(error_of(rows_of({{1, 2}}), {}),
            "cannot use t.csv: expected at least two rows without missing values, got 1");
  EXPECT_EQ(error_of(rows_of({{1}, {2}}), {"a"}),
            "cannot use t.csv: expected at least two columns, got 1");
  EXPECT_EQ(error_of(rows_of({{1, 2}, {3, 5}}), {"a", "a"}),
            "cannot use t.csv: expected columns of different names, got \"a\" for columns 0 and 1");
}

}  // namespace
}  // namespace nsimplex::causal

#include "support/names.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "input_error_of.h"
#include "kernels/common/rounding.h"
#include "support/median.h"
#include "support/require.h"

namespace nsimplex {

enum class Axis { rows, columns, both, neither };

template <>
inline constexpr Names<Axis, 3> kNames<Axis>{
    {{"rows", Axis::rows}, {"columns", Axis::columns}, {"both", Axis::both}}};

namespace {

using test::input_error_of;

TEST(Names, GoBothWays) {
  for (const std::string& name : names_of<Axis>()) EXPECT_EQ(name_of(*find_name<Axis>(name)), name);
  EXPECT_EQ(names_of<Axis>(), (std::vector<std::string>{"rows", "columns", "both"}));
  EXPECT_EQ(find_name<Axis>("row"), std::nullopt);
  EXPECT_EQ(find_name<Axis>(""), std::nullopt);
  EXPECT_EQ(name_of(Axis::neither), "");
}

TEST(Names, AreListedInMessages) {
  EXPECT_EQ(expected_name<Axis>("row"), "expected one of rows, columns, both, got 'row'");
  EXPECT_EQ(expected_name<Axis>("row", {.before = "", .quote = "'", .last = " or "}),
            "expected 'rows', 'columns' or 'both', got 'row'");
  EXPECT_EQ(expected_name<Axis>("row", {.before = "", .separator = " or ", .got = ""}),
            "expected rows or columns or both, got row");
  EXPECT_EQ(parse_name<Axis>("--axis", "both"), Axis::both);
  EXPECT_EQ(input_error_of([] { parse_name<Axis>("--axis", "row"); }),
            "--axis: expected one of \"rows\", \"columns\", \"both\", got \"row\"");
}

TEST(Require, ConcatenatesWhatItIsGiven) {
  EXPECT_EQ(input_error_of([] { require(true, "never"); }), "nothing was thrown");
  EXPECT_EQ(input_error_of([] { require(false, "[call] rate: expected ", 1, " to ", 2.5); }),
            "[call] rate: expected 1 to 2.5");
  EXPECT_EQ(
      input_error_of([] { require_argument(false, "rate", "a positive number", std::nan("")); }),
      "rate: expected a positive number, got nan");
  EXPECT_EQ(input_error_of([] { require_at_least("steps", 1, 1); }), "nothing was thrown");
  EXPECT_EQ(input_error_of([] { require_at_least("steps", 1, 0); }),
            "steps: expected at least 1, got 0");
}

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({4.0, 1.0, 2.0, 3.0}), 2.0);
  EXPECT_EQ(median({7.0}), 7.0);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Rounding, GoesUp) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(8, 4), 2);
  EXPECT_EQ(ceil_div(9, 4), 3);
  EXPECT_EQ(round_up(9, 4), 12);
  EXPECT_EQ(round_up(12, 4), 12);
}

}  // namespace
}  // namespace nsimplex

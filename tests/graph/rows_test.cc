#include "graph/tuple_lists.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

namespace nsimplex::graph {
namespace {

// Rows of `width` numbers below `limit`, many of them equal when there are few.
std::vector<int64_t> any_rows(int64_t width, int64_t limit) {
  const auto count = *rc::gen::inRange<int64_t>(0, 60);
  return *rc::gen::container<std::vector<int64_t>>(count * width,
                                                   rc::gen::inRange<int64_t>(0, limit));
}

TEST(Rows, OrderIsTheStableLexicographicOne) {
  rc::check([] {
    const auto width = *rc::gen::inRange<int64_t>(1, 5);
    // From one digit of the radix sort to all of them.
    const int64_t limit = *rc::gen::element<int64_t>(1, 2, 5, 2048, 2049, int64_t{1} << 40,
                                                     std::numeric_limits<int64_t>::max());
    const std::vector<int64_t> values = any_rows(width, limit);
    const Rows rows{values.data(), static_cast<int64_t>(values.size()) / width, width};
    std::vector<int64_t> expected(rows.count);
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
      return row_before(rows, a, b) || (rows_equal(rows, a, b) && a < b);
    });
    const SortedRows sorted = sort_rows(rows, limit);
    RC_ASSERT(sorted.order == expected);
    std::vector<int64_t> expected_values;
    for (const int64_t row : expected) {
      expected_values.insert(expected_values.end(), rows[row].begin(), rows[row].end());
    }
    RC_ASSERT(sorted.values == expected_values);
  });
}

TEST(Rows, WithoutColumnsAreAllEqual) {
  EXPECT_EQ(sort_rows({nullptr, 3, 0}, 10).order, (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace nsimplex::graph

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace nsimplex::graph {

/// A matrix int64 [count, width], one row after the other.
struct Rows {
  const int64_t* values = nullptr;
  int64_t count = 0, width = 0;

  std::span<const int64_t> operator[](int64_t row) const {
    return {values + row * width, static_cast<size_t>(width)};
  }
  std::span<const int64_t> all() const { return {values, static_cast<size_t>(count * width)}; }
};

/// Whether row `a` comes before row `b` in lexicographic order; equal rows do not.
inline bool row_before(const Rows& rows, int64_t a, int64_t b) {
  const auto first = rows[a], second = rows[b];
  return std::lexicographical_compare(first.begin(), first.end(), second.begin(), second.end());
}

inline bool rows_equal(const Rows& rows, int64_t a, int64_t b) {
  return std::ranges::equal(rows[a], rows[b]);
}

struct SortedRows {
  std::vector<int64_t> values;  ///< the rows
  std::vector<int64_t> order;   ///< the number that each had before
};

/// The rows in lexicographic order, equal ones as they stand. Entries are in [0, limit). A radix
/// sort: O(count width log(limit)), and memory for two copies of the numbers.
SortedRows sort_rows(const Rows& rows, int64_t limit);

}  // namespace nsimplex::graph

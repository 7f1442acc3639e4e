#pragma once

#include <compare>
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

/// Rows of one width in lexicographic order. A plain loop: they are too short for a call of memcmp.
inline std::strong_ordering compare_rows(std::span<const int64_t> a, std::span<const int64_t> b) {
  size_t i = 0;
  while (i < a.size() && a[i] == b[i]) ++i;
  return i == a.size() ? std::strong_ordering::equal : a[i] <=> b[i];
}

/// Whether row `a` comes before row `b` in lexicographic order; equal rows do not.
inline bool row_before(const Rows& rows, int64_t a, int64_t b) {
  return compare_rows(rows[a], rows[b]) < 0;
}

inline bool rows_equal(const Rows& rows, int64_t a, int64_t b) {
  return compare_rows(rows[a], rows[b]) == 0;
}

struct SortedRows {
  std::vector<int64_t> values;  ///< the rows
  std::vector<int64_t> order;   ///< the number that each had before
};

/// The rows in lexicographic order, equal ones as they stand. Entries are in [0, limit). A radix
/// sort: O(count width log(limit)), and memory for two copies of the numbers.
SortedRows sort_rows(const Rows& rows, int64_t limit);

}  // namespace nsimplex::graph

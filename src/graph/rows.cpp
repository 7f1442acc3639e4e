#include "graph/rows.h"

#include <array>
#include <bit>
#include <numeric>

namespace nsimplex::graph {
namespace {

// Digits of a pass. Their counters fit into the first-level cache, and numbers of up to 4 million
// nodes take two passes.
constexpr int kDigitBits = 11;
constexpr int64_t kDigits = int64_t{1} << kDigitBits;

// One stable pass: `to` gets the rows of `from` by the digit of column `column` at `shift`.
void sort_by_digit(const Rows& rows, int64_t column, int shift, const std::vector<int64_t>& from,
                   std::vector<int64_t>& to) {
  const auto digit = [&](int64_t row) {
    return (rows.values[row * rows.width + column] >> shift) & (kDigits - 1);
  };
  std::array<int64_t, kDigits> place{};
  for (const int64_t row : from) ++place[digit(row)];
  std::exclusive_scan(place.begin(), place.end(), place.begin(), int64_t{0});
  for (const int64_t row : from) to[place[digit(row)]++] = row;
}

}  // namespace

std::vector<int64_t> row_order(const Rows& rows, int64_t limit) {
  std::vector<int64_t> order(rows.count);
  std::iota(order.begin(), order.end(), int64_t{0});
  bool ascending = true;
  for (int64_t row = 1; row < rows.count && ascending; ++row) {
    ascending = !row_before(rows, row, row - 1);
  }
  if (ascending) return order;
  const int bits = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(limit - 1, 0)));
  std::vector<int64_t> sorted(rows.count);
  for (int64_t column = rows.width - 1; column >= 0; --column) {
    for (int shift = 0; shift < bits; shift += kDigitBits) {
      sort_by_digit(rows, column, shift, order, sorted);
      order.swap(sorted);
    }
  }
  return order;
}

}  // namespace nsimplex::graph

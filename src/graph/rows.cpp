#include "graph/rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace nsimplex::graph {
namespace {

// Bits of a pass: as many places to write to as the first-level cache and its page table hold.
constexpr int kDigitBits = 8;
constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;
constexpr int kKeyBits = 64;

struct Keyed {
  uint64_t key;
  int64_t row;
};

// Sorts by the lower `bits` of the keys; equal ones stay in order. Passes read and write memory
// from front to back, which sorting row numbers alone would not.
void sort_by_key(std::vector<Keyed>& items, std::vector<Keyed>& spare, int bits) {
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    std::array<int64_t, kDigits> place{};
    for (const Keyed& item : items) ++place[item.key >> shift & (kDigits - 1)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), int64_t{0});
    for (const Keyed& item : items) spare[place[item.key >> shift & (kDigits - 1)]++] = item;
    items.swap(spare);
  }
}

bool ascends(const Rows& rows) {
  for (int64_t row = 1; row < rows.count; ++row) {
    if (row_before(rows, row, row - 1)) return false;
  }
  return true;
}

// The values of rows that one key holds whole.
std::vector<int64_t> values_of_keys(const std::vector<Keyed>& items, int64_t width, int bits) {
  const uint64_t mask = bits == kKeyBits ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  std::vector<int64_t> values(items.size() * width);
  for (size_t i = 0; i < items.size(); ++i) {
    for (int64_t column = 0; column < width; ++column) {
      values[i * width + column] =
          static_cast<int64_t>(items[i].key >> (width - 1 - column) * bits & mask);
    }
  }
  return values;
}

}  // namespace

SortedRows sort_rows(const Rows& rows, int64_t limit) {
  SortedRows sorted;
  sorted.order.resize(rows.count);
  std::iota(sorted.order.begin(), sorted.order.end(), int64_t{0});
  if (ascends(rows)) {
    sorted.values.assign(rows.values, rows.values + rows.count * rows.width);
    return sorted;
  }
  // As many columns as fit make one key; keys are sorted from the last to the first.
  const int bits = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(limit - 1, 1)));
  const int64_t columns = kKeyBits / bits;
  std::vector<Keyed> items(rows.count), spare(rows.count);
  for (int64_t end = rows.width; end > 0; end -= columns) {
    const int64_t first = std::max<int64_t>(end - columns, 0);
    for (int64_t i = 0; i < rows.count; ++i) {
      uint64_t key = 0;
      for (const int64_t entry : rows[sorted.order[i]].subspan(first, end - first)) {
        key = key << bits | static_cast<uint64_t>(entry);
      }
      items[i] = {key, sorted.order[i]};
    }
    sort_by_key(items, spare, static_cast<int>(end - first) * bits);
    for (int64_t i = 0; i < rows.count; ++i) sorted.order[i] = items[i].row;
  }
  if (columns >= rows.width) {
    sorted.values = values_of_keys(items, rows.width, bits);
    return sorted;
  }
  sorted.values.reserve(rows.count * rows.width);
  for (const int64_t row : sorted.order) {
    sorted.values.insert(sorted.values.end(), rows[row].begin(), rows[row].end());
  }
  return sorted;
}

}  // namespace nsimplex::graph

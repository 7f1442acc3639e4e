#include "analysis/mask_families.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace nsimplex::analysis {
namespace {

// keys_of(row): the keys that may follow a row (i, j1, ..) of a query.
MaskRows grow(
    int64_t nodes, int64_t order,
    const std::function<const std::vector<int64_t>&(const std::vector<int64_t>&)>& keys_of) {
  MaskRows mask;
  mask.order = order;
  mask.row_offsets = {0};
  std::vector<int64_t> row;
  const std::function<void()> extend = [&] {
    if (std::ssize(row) == order + 1) {
      mask.values.insert(mask.values.end(), row.begin(), row.end());
      return;
    }
    for (const int64_t key : keys_of(row)) {
      row.push_back(key);
      extend();
      row.pop_back();
    }
  };
  for (int64_t query = 0; query < nodes; ++query) {
    row.assign(1, query);
    extend();
    mask.row_offsets.push_back(std::ssize(mask.values) / (order + 1));
  }
  mask.all_rows = {0, mask.row_offsets.back()};
  mask.all_nodes = {0, nodes};
  return mask;
}

}  // namespace

KeySets window_keys(int64_t nodes, int64_t width) {
  KeySets keys(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = std::max<int64_t>(0, i - width + 1); j <= i; ++j) keys[i].push_back(j);
  }
  return keys;
}

KeySets band_keys(int64_t nodes, int64_t reach) {
  KeySets keys(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t last = std::min(nodes - 1, i + reach);
    for (int64_t j = std::max<int64_t>(0, i - reach); j <= last; ++j) keys[i].push_back(j);
  }
  return keys;
}

KeySets random_keys(int64_t nodes, int64_t count, RandomStream& random) {
  KeySets keys(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    std::vector<int64_t>& own = keys[i];
    own.push_back(i);
    while (std::ssize(own) < std::min(count, nodes)) {
      const int64_t key = random.below(nodes);
      if (std::ranges::find(own, key) == own.end()) own.push_back(key);
    }
    std::ranges::sort(own);
  }
  return keys;
}

MaskRows product_mask(const KeySets& keys, int64_t order) {
  return grow(std::ssize(keys), order,
              [&](const auto& row) -> const std::vector<int64_t>& { return keys[row.front()]; });
}

MaskRows path_mask(const KeySets& keys, int64_t order) {
  return grow(std::ssize(keys), order,
              [&](const auto& row) -> const std::vector<int64_t>& { return keys[row.back()]; });
}

}  // namespace nsimplex::analysis

#pragma once

#include <cstdint>
#include <vector>

#include "graph/tuple_view.h"
#include "support/random.h"

namespace nsimplex::analysis {

/// The mask of one head: rows (i, j1, .., jN), those of a query one after the other.
struct MaskRows {
  int64_t order = 1;                         ///< N
  std::vector<int64_t> values;               ///< [m, N + 1]
  std::vector<int64_t> row_offsets;          ///< [n + 1]: the rows of each query
  std::vector<int64_t> all_rows, all_nodes;  ///< {0, m} and {0, n}

  int64_t nodes() const { return std::ssize(row_offsets) - 1; }
  int64_t count() const { return row_offsets.back(); }
  graph::TupleView view() const {
    return {{values.data(), count(), order + 1}, all_rows, all_nodes};
  }
};

/// The keys of each query, ascending.
using KeySets = std::vector<std::vector<int64_t>>;

/// The last `width` positions, the query's own included.
KeySets window_keys(int64_t nodes, int64_t width);

/// The positions that are at most `reach` away, before and after.
KeySets band_keys(int64_t nodes, int64_t reach);

/// The query's own position and count - 1 others, drawn anew for each query.
KeySets random_keys(int64_t nodes, int64_t count, RandomStream& random);

/// Every combination of a query's keys: what a window or a top-k set on every axis admits.
MaskRows product_mask(const KeySets& keys, int64_t order);

/// Chains: j1 is a key of the query, j2 one of j1, and so on.
MaskRows path_mask(const KeySets& keys, int64_t order);

}  // namespace nsimplex::analysis

// Declares the tiles of the reference.

#pragma once

#include <array>
#include <vector>

#include "attention/common/attention_arguments.h"

namespace nsimplex::dense {

/// Some consecutive queries and, per axis, the keys with which one step of the reference combines
/// them.
struct Tile {
  int64_t first_query = 0, queries = 0;
  std::array<kernels::Range, kernels::kMaxOrder> keys;
};

/// Divides a call into blocks of queries, and each block into tiles whose temporaries stay within a
/// fixed number of elements. Consecutive queries share a tile if they fit. If one query has too
/// many tuples, the leading axes are divided too, but never the last axis.
class Tiling {
 public:
  Tiling(const Call& call, const Settings& settings);

  /// Calls visit(first query, queries, tiles) for every block in order. There are no tiles if no
  /// query sees a tuple. A call without queries is one block of 0 queries.
  template <class Visit>
  void for_each_block(Visit&& visit) const {
    int64_t first = 0;
    do {
      const int64_t queries = std::min(block_, queries_ - first);
      visit(first, queries, tiles(first, queries));
      first += block_;
    } while (first < queries_);
  }

 private:
  std::vector<Tile> tiles(int64_t first_query, int64_t queries) const;
  kernels::Range seen(int axis, int64_t first_query, int64_t queries) const;
  int64_t elements(int64_t queries) const;

  Settings settings_;
  int64_t queries_ = 0;
  int64_t sequences_ = 0;  ///< batch times query heads
  int64_t channels_ = 0;
  int64_t block_ = 1;
  std::array<int64_t, kernels::kMaxOrder> step_{};  ///< keys per axis and tile
};

}  // namespace nsimplex::dense

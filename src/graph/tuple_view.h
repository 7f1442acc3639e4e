#pragma once

#include <nsimplex/symmetry.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/rows.h"

namespace nsimplex::graph {

/// A checked TupleBatch (nsimplex/graph.h) without Torch.
struct TupleView {
  Rows tuples;
  std::span<const int64_t> tuple_offsets, node_offsets;
  Symmetry symmetry = Symmetry::ordered;

  int64_t graphs() const { return static_cast<int64_t>(tuple_offsets.size()) - 1; }
  int64_t nodes() const { return node_offsets.back(); }
};

/// Whether two lists hold the same tuples of the same graphs, row by row.
inline bool same_tuples(const TupleView& a, const TupleView& b) {
  return a.symmetry == b.symmetry && a.tuples.width == b.tuples.width &&
         std::ranges::equal(a.node_offsets, b.node_offsets) &&
         std::ranges::equal(a.tuple_offsets, b.tuple_offsets) &&
         std::ranges::equal(a.tuples.all(), b.tuples.all());
}

/// Tuples that were made from others.
struct TupleList {
  int64_t width = 0;
  std::vector<int64_t> values;  ///< [count, width], one after the other
  std::vector<int64_t> origin;  ///< [count]: the row each was made from, -1 for none

  int64_t count() const { return static_cast<int64_t>(origin.size()); }
  Rows rows() const { return {values.data(), count(), width}; }
  void reserve(int64_t tuples) {
    values.reserve(tuples * width);
    origin.reserve(tuples);
  }
  void add(std::span<const int64_t> tuple, int64_t from) {
    values.insert(values.end(), tuple.begin(), tuple.end());
    origin.push_back(from);
  }
};

}  // namespace nsimplex::graph

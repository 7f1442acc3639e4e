#pragma once

#include "graph/tuple_view.h"

namespace nsimplex::graph {

/// Who shares a tuple with whom, as compressed rows.
struct Adjacency {
  std::vector<int64_t> offsets;     ///< [n + 1]
  std::vector<int64_t> neighbours;  ///< ascending for each node

  int64_t nodes() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t degree(int64_t node) const { return offsets[node + 1] - offsets[node]; }
  std::span<const int64_t> operator[](int64_t node) const {
    return std::span(neighbours).subspan(offsets[node], degree(node));
  }
};

/// The neighbours of every node: the other nodes of its tuples, each once, whatever the places in
/// the tuple. Loops have no part. O(m k^2 log(n)).
Adjacency adjacency_of(const TupleView& batch);

/// Nodes that tuples connect have one number: [n], counted from 0 in the order of the lowest node
/// of each component. O(m k), but for the inverse Ackermann function.
std::vector<int64_t> components_of(const TupleView& batch);

}  // namespace nsimplex::graph

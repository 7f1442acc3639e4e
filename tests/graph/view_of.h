#pragma once

#include <string>
#include <vector>

#include "graph/tuple_lists.h"

namespace nsimplex::graph {

/// Tuples of graphs in numbers of the whole batch, that own what they show.
struct Tuples {
  std::vector<int64_t> values, tuple_offsets, node_offsets;
  int64_t width = 2;
  Symmetry symmetry = Symmetry::ordered;

  /// One graph.
  static Tuples of(int64_t nodes, std::vector<int64_t> values, int64_t width = 2,
                   Symmetry symmetry = Symmetry::ordered) {
    const int64_t rows = std::ssize(values) / width;
    return {std::move(values), {0, rows}, {0, nodes}, width, symmetry};
  }

  TupleView view() const {
    const int64_t rows = width == 0 ? (tuple_offsets.empty() ? 0 : tuple_offsets.back())
                                    : std::ssize(values) / width;
    return {{values.data(), rows, width}, tuple_offsets, node_offsets, symmetry};
  }
};

/// Nodes 0 .. n - 1 one after the other; closed: the last beside the first.
inline Tuples chain(int64_t nodes, bool closed = false) {
  std::vector<int64_t> edges;
  for (int64_t node = 0; node + 1 < nodes; ++node) edges.insert(edges.end(), {node, node + 1});
  if (closed) edges.insert(edges.end(), {0, nodes - 1});
  return Tuples::of(nodes, edges, 2, Symmetry::undirected);
}

}  // namespace nsimplex::graph

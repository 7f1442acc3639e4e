#pragma once

#include <rapidcheck.h>

#include "graph/view_of.h"

namespace nsimplex::graph {

/// A graph on `nodes` nodes by one coin a pair.
inline Tuples any_graph(int64_t nodes) {
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < nodes; ++i) {
    for (int64_t j = i + 1; j < nodes; ++j) {
      if (*rc::gen::arbitrary<bool>()) edges.insert(edges.end(), {i, j});
    }
  }
  return Tuples::of(nodes, edges, 2, Symmetry::undirected);
}

}  // namespace nsimplex::graph

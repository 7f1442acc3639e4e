#pragma once

#include <cstdint>

#include "equivariant/expressivity/colour_refinement.h"
#include "io/graph_formats.h"

// Graphs of which the theory says what Weisfeiler-Leman tests can tell apart.

namespace nsimplex::equivariant {

inline io::SimpleGraph cycle(int64_t nodes) {
  io::SimpleGraph graph{nodes, {0, nodes - 1}};
  for (int64_t i = 0; i + 1 < nodes; ++i) graph.edges.insert(graph.edges.end(), {i, i + 1});
  return graph;
}

inline io::SimpleGraph two_triangles() { return {6, {0, 1, 0, 2, 1, 2, 3, 4, 3, 5, 4, 5}}; }

// A graph on the 4 x 4 torus; `joined` says whether nodes at a distance (a, b), modulo 4, are
// neighbours.
template <class Joined>
io::SimpleGraph on_torus(const Joined& joined) {
  io::SimpleGraph graph{16, {}};
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = i + 1; j < 16; ++j) {
      if (joined((j / 4 - i / 4 + 4) % 4, (j % 4 - i % 4 + 4) % 4)) {
        graph.edges.insert(graph.edges.end(), {i, j});
      }
    }
  }
  return graph;
}

// The two strongly regular graphs with parameters (16, 6, 2, 2).
inline io::SimpleGraph rook() {
  return on_torus([](int64_t a, int64_t b) { return a == 0 || b == 0; });
}
inline io::SimpleGraph shrikhande() {
  return on_torus([](int64_t a, int64_t b) {
    const bool unit_a = a == 1 || a == 3, unit_b = b == 1 || b == 3;
    return (a == 0 && unit_b) || (b == 0 && unit_a) || (unit_a && a == b);
  });
}

}  // namespace nsimplex::equivariant

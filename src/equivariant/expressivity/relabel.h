#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "io/graph6.h"
#include "support/random.h"

namespace nsimplex::equivariant {

/// The same graph with its nodes in random order, the same for the same seed.
inline io::SimpleGraph relabeled(const io::SimpleGraph& graph, uint64_t seed) {
  std::vector<int64_t> label(graph.nodes);
  std::iota(label.begin(), label.end(), 0);
  for (int64_t i = graph.nodes - 1; i > 0; --i) {
    std::swap(label[i], label[random_below(i + 1, random_bits(seed, i))]);
  }
  io::SimpleGraph result{graph.nodes, {}};
  for (size_t e = 0; e < graph.edges.size(); e += 2) {
    const auto [low, high] = std::minmax(label[graph.edges[e]], label[graph.edges[e + 1]]);
    result.edges.insert(result.edges.end(), {low, high});
  }
  return result;
}

}  // namespace nsimplex::equivariant

#pragma once

#include <cstdint>
#include <vector>

#include "io/graph6.h"

namespace nsimplex::equivariant {

/// All that a simple graph says of two nodes.
enum class PairRelation : uint8_t { neither, neighbours, equal };
inline constexpr uint64_t kPairRelations = 3;

/// Entry i n + j is the relation of nodes i and j.
inline std::vector<PairRelation> pair_relations(const io::SimpleGraph& graph) {
  const int64_t n = graph.nodes;
  std::vector<PairRelation> relations(n * n, PairRelation::neither);
  for (int64_t i = 0; i < n; ++i) relations[i * n + i] = PairRelation::equal;
  for (size_t e = 0; e < graph.edges.size(); e += 2) {
    const int64_t i = graph.edges[e], j = graph.edges[e + 1];
    relations[i * n + j] = relations[j * n + i] = PairRelation::neighbours;
  }
  return relations;
}

}  // namespace nsimplex::equivariant

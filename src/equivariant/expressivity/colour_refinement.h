#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "io/graph_formats.h"
#include "support/random.h"

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

/// What can be told apart of graphs by colour refinement, the exact yardstick of equivariant
/// layers: entry g of the result is the number of the kind of graph g, kinds being counted in the
/// order of their first graph. Graphs of one kind are the same to every network of equivariant
/// layers on all tuples of `order`, whatever its depth and width; layers that sum can tell all
/// others apart.
///
/// Order 2 colours nodes: the new colour of u is its old one and the multiset over all nodes w of
/// (whether u and w are neighbours, colour of w). This is 1-WL. Order 3 colours pairs, the new
/// colour of (u, v) being its old one and the multiset over w of (colour of (u, w), colour of
/// (w, v)), from the three colours equal, neighbours and neither. This is the folklore 2-WL test,
/// as strong as 3-WL on triples. Both go on until no graph has more colours than before, and then
/// the multisets of colours are compared. Signatures are compared in full: nothing is hashed away.
///
/// A round takes O(n^order log n) for each graph; memory is O(n^order) at most, for the signatures
/// of all colours. `between_rounds`, where given, is called before every graph of every round, to
/// stop by an exception.
///
/// Sources: Cai, Fuerer and Immerman, "An optimal lower bound on the number of variables for graph
/// identification", Combinatorica 12 (1992); Maron et al., arXiv 1905.11136 (order k as k-WL).
std::vector<int64_t> refine_colours(std::span<const io::SimpleGraph> graphs, int64_t order,
                                    const std::function<void()>& between_rounds = {});

/// Pairs of graphs, one after the other, that 1-WL tells apart though both have the same degrees: a
/// random graph of 8 to 16 nodes and what switching its edges makes of it. Networks of order 2
/// must tell them apart as well. The same for the same seed.
std::vector<io::SimpleGraph> control_pairs(int64_t pairs, uint64_t seed);

}  // namespace nsimplex::equivariant

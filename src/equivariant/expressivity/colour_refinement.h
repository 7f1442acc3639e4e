// Declares the Weisfeiler-Leman test and pairs of control graphs.

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

/// The relation of two nodes in a simple graph.
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

/// The same graph with its nodes in a random order, which the seed determines.
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

/// Classifies graphs by colour refinement, the exact limit of equivariant layers. Entry g of the
/// result is the number of the kind of graph g; kinds are counted in the order of their first
/// graph. No network of equivariant layers on all tuples of `order` can distinguish graphs of one
/// kind, whatever its depth and width. Layers that sum can distinguish all others.
///
/// Order 2 colours nodes. The new colour of u is its old one and the multiset over all nodes w of
/// (whether u and w are neighbours, colour of w). This is 1-WL. Order 3 colours pairs, starting
/// from the three colours equal, neighbours and neither. The new colour of (u, v) is its old one
/// and the multiset over w of (colour of (u, w), colour of (w, v)). This is the folklore 2-WL test,
/// which is as strong as 3-WL on triples. Both continue until no graph gets more colours, and then
/// compare the multisets of colours. Signatures are compared in full, without hashes.
///
/// A round takes O(n^order log n) per graph. Memory is at most O(n^order), for the signatures of
/// all colours. `between_rounds`, if given, is called before every graph of every round and may
/// throw to stop.
///
/// Sources: Cai, Fuerer and Immerman, "An optimal lower bound on the number of variables for graph
/// identification", Combinatorica 12 (1992); Maron et al., arXiv 1905.11136 (order k as k-WL).
std::vector<int64_t> refine_colours(std::span<const io::SimpleGraph> graphs, int64_t order,
                                    const std::function<void()>& between_rounds = {});

/// Pairs of consecutive graphs that 1-WL distinguishes although both have the same degrees: a
/// random graph of 8 to 16 nodes, and the result of switching its edges. Networks of order 2 must
/// distinguish them as well. The seed determines them.
std::vector<io::SimpleGraph> control_pairs(int64_t pairs, uint64_t seed);

}  // namespace nsimplex::equivariant

#pragma once

#include "graph/tuple_lists.h"

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

/// All cliques of 1 to `largest` nodes; entry s - 1 of the result has those of s nodes, each as an
/// ascending tuple, in lexicographic order. Values only; `origin` is -1.
///
/// Nodes are ranked by degree and a clique grows by nodes of higher rank only, so that the
/// candidates of a node are at most sqrt(2m): edges take O(m), triangles O(m^1.5), and s nodes that
/// times (2m)^((s - 3) / 2) at worst.
std::vector<TupleList> cliques_of(const Adjacency& graph, int64_t largest);

/// The ascending pairs of nodes of a graph that have one label, in lexicographic order. Values
/// only; `origin` is -1. O(n log n) and what it returns.
TupleList label_cliques(std::span<const int64_t> labels, std::span<const int64_t> node_offsets);

/// The undirected graph whose nodes are the edges of `edges` [m, 2] (undirected, no loops) and
/// whose edges join two that share a node: ascending pairs of rows, in lexicographic order. The
/// values' `origin` is the node that the two share. O(sum of the squared degrees), what it returns.
TupleList line_graph_of(const Rows& edges, int64_t nodes);

}  // namespace nsimplex::graph

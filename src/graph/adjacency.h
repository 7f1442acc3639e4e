// Declares neighbours, connected components, cliques and line graphs.

#pragma once

#include "graph/tuple_lists.h"

namespace nsimplex::graph {

/// Which nodes share a tuple, as compressed rows.
struct Adjacency {
  std::vector<int64_t> offsets;     ///< [n + 1]
  std::vector<int64_t> neighbours;  ///< ascending for each node

  int64_t nodes() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t degree(int64_t node) const { return offsets[node + 1] - offsets[node]; }
  std::span<const int64_t> operator[](int64_t node) const {
    return std::span(neighbours).subspan(offsets[node], degree(node));
  }
};

/// The neighbours of every node: the other nodes of its tuples, without repetitions, in any places
/// of the tuple. Loops are ignored. O(m k^2 log(n)).
Adjacency adjacency_of(const TupleView& batch);

/// A number per connected component of every node: [n], counted from 0 in the order of the lowest
/// node of each component. O(m k), except for the inverse Ackermann function.
std::vector<int64_t> components_of(const TupleView& batch);

/// All cliques of 1 to `largest` nodes; entry s - 1 of the result has those of s nodes, each as an
/// ascending tuple, in lexicographic order. Values only; `origin` is -1.
///
/// Nodes are ranked by degree, and a clique grows only by nodes of higher rank. So a node has at
/// most sqrt(2m) candidates. Edges take O(m), triangles O(m^1.5), and s nodes at worst that times
/// (2m)^((s - 3) / 2).
std::vector<TupleList> cliques_of(const Adjacency& graph, int64_t largest);

/// The ascending pairs of nodes of a graph that have the same label, in lexicographic order. Values
/// only; `origin` is -1. O(n log n) plus the size of the result.
TupleList label_cliques(std::span<const int64_t> labels, std::span<const int64_t> node_offsets);

/// The undirected graph whose nodes are the edges of `edges` [m, 2] (undirected, no loops). Its
/// edges join edges that share a node: ascending pairs of rows, in lexicographic order. `origin` is
/// the shared node. O(sum of the squared degrees), the size of the result.
TupleList line_graph_of(const Rows& edges, int64_t nodes);

}  // namespace nsimplex::graph

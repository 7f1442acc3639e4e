#pragma once

#include "graph/adjacency.h"

namespace nsimplex::graph {

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

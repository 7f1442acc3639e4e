#pragma once

#include <nsimplex/graph_layers.h>

namespace nsimplex::training {

/// The edges of graphs as tokens: the nodes of their line graphs, which are joined where edges
/// share a node. A node without edges is a token of its own, as if it were joined to itself without
/// a feature, so that nothing is lost of a graph.
///
/// Source: section F.2 of "How Smoothing is N-simplicial Attention?", whose token is [n1 | n2 |
/// e12]; which end comes first is there left to the order of the nodes. Here a token has both
/// orders.
struct LineTokens {
  at::Tensor features;     ///< [2, t, 2 a + b]: [x_i | x_j | e_ij] and [x_j | x_i | e_ji]
  GraphMessages messages;  ///< among the tokens
  at::Tensor shared;       ///< [e, a]: features of the node that the ends of a message share
  at::Tensor graphs;       ///< int64 [t]: the graph of every token
};

/// Of ordered pairs that hold both directions of every edge and the loops of all nodes, whose
/// features [m, a + b] are those of nodes on loops and of edges, from channel a on, elsewhere.
/// Throws InputError for other lists. Complexity: O(m + sum of squared degrees).
LineTokens line_tokens(const TupleBatch& pairs, const at::Tensor& features, int64_t node_channels);

}  // namespace nsimplex::training

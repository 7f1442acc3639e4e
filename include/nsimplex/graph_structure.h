#pragma once

#include <nsimplex/graph.h>

#include <vector>

/// What the tuples of a batch say about its nodes. Neighbours are nodes that share a tuple,
/// whatever their places in it; loops make none. For k = 2 this is the graph without directions.
namespace nsimplex {

/// Neighbours of every node of a batch, as compressed sparse rows.
struct Adjacency {
  at::Tensor offsets;     ///< int64 [n + 1]
  at::Tensor neighbours;  ///< int64, ascending for each node, each once
};

NSIMPLEX_API Adjacency adjacency(const TupleBatch& batch);

/// Neighbours of every node: int64 [n].
NSIMPLEX_API at::Tensor node_degrees(const TupleBatch& batch);

/// One number for all nodes that tuples connect: int64 [n], from 0 in the order of the lowest node
/// of each component, through the whole batch.
NSIMPLEX_API at::Tensor connected_components(const TupleBatch& batch);

/// The pairs of nodes of a graph that have one label, undirected and without loops: a partition of
/// its nodes as a graph. labels: int64 [n], any numbers; node_offsets: int64 [B + 1].
///
/// Complexity: O(n log n) and what it returns.
NSIMPLEX_API TupleBatch label_cliques(const at::Tensor& labels, const at::Tensor& node_offsets);

/// Every connected component completed to a clique: the label_cliques() of connected_components(),
/// a partition of the nodes whatever edges were predicted.
NSIMPLEX_API TupleBatch component_cliques(const TupleBatch& batch);

/// The simplices of the clique complex of a graph (order 2): element s - 1 holds the cliques of s
/// nodes, s = 1 .. largest, as undirected batches.
///
/// Complexity: O(m) for edges, O(m^1.5) for triangles, at most that times (2m)^((s - 3) / 2)
/// beyond.
NSIMPLEX_API std::vector<TupleBatch> simplices(const TupleBatch& batch, int64_t largest);

/// The line graph of an undirected graph without loops: its nodes are the rows of the batch, its
/// edges (undirected) the pairs of rows that share a node. Complexity: O(sum of squared degrees).
struct LineGraph {
  TupleBatch batch;
  at::Tensor shared;  ///< int64 [m]: the node that the two edges share
};

NSIMPLEX_API LineGraph line_graph(const TupleBatch& batch);

struct LaplacianEigenvectors {
  at::Tensor values;   ///< float64 [B, count], ascending
  at::Tensor vectors;  ///< float64 [n, count], of length 1 on each graph
};

/// The `count` lowest eigenvectors of each graph's normalised Laplacian, encodings of its nodes:
///
///     L = I - D^-1/2 A D^-1/2 = U^T diag(values) U
///
/// with A from adjacency() and a row of zeros for a node without neighbours. The first vector of a
/// connected graph, of value 0, is D^1/2 1 up to scale. Signs: the entry of largest magnitude is
/// positive, the first of those within 1e-6 of it. Where an eigenvalue is repeated the vectors are
/// one orthonormal basis of many; a model should not depend on which. Graphs with fewer nodes than
/// `count` have zeros in the columns they lack. Bits do not depend on the number of threads.
///
/// Complexity: up to 256 nodes O(n^3). Larger graphs are factorised sparsely while the factor stays
/// thin (chains, trees, planar meshes: about O(n log n)), else iterated on, O(m) a step.
///
/// Source: Kim et al., "Transformers Generalize DeepSets and Can be Extended to Graphs and
/// Hypergraphs", equation 31.
NSIMPLEX_API LaplacianEigenvectors laplacian_eigenvectors(const TupleBatch& batch, int64_t count);

}  // namespace nsimplex

#pragma once

#include <nsimplex/graph.h>

/// Masks as hypergraphs: how far information has to go under them. A mask is a batch of tuples (i,
/// j1, .., jN), one for every admissible tuple J of query i: the indices of a bool mask's entries
/// that are true, or the rows of a list of sparse_attention() behind their query. In one layer i
/// receives from j1 .. jN. Of an undirected batch every row stands for all its orders, so a graph
/// is the mask of attention between neighbours.
namespace nsimplex {

struct MaskExtent {
  /// int64 [n]: layers until a node has reached all others of its mask; -1 where it never does.
  /// Nodes that reach all are centres; a mask that has one is quasi-strongly connected.
  at::Tensor eccentricities;
  at::Tensor loops;  ///< bool [n]: the node is target and source of one tuple
  at::Tensor radii;  ///< int64 [B]: the least eccentricity of a centre, -1 without one

  /// int64 [B]: the longest way between two nodes of the 1-skeleton, in which those that share a
  /// tuple are neighbours, both ways and whatever their places; -1 where it is not connected.
  at::Tensor diameters;

  /// float64 [B]: lambda_2, the second smallest eigenvalue of the skeleton's I - D^-1/2 A D^-1/2; 0
  /// where it is not connected, NaN for less than two nodes.
  at::Tensor gaps;
};

/// Radius, diameter and spectral gap of every mask of a batch.
///
/// Complexity: O(n (n + pairs of neighbours)) for the ways; for the eigenvalue O(n^3) up to 256
/// nodes, above about 50 sparse factorisations while these stay thin (windows, chains, trees,
/// meshes: 0.05 s at 20,000 nodes), else as laplacian_eigenvectors(). Masks run in parallel.
///
/// Source: "How Smoothing is N-simplicial Attention?", definitions 3.3 and 3.5 and section 3.1.
NSIMPLEX_API MaskExtent mask_extent(const TupleBatch& masks);

/// Layers from node j until i depends on it: int64 [n, n] at [j, i], 0 for j itself, -1 where it
/// never does. O(n (n + pairs)) time, O(n^2) memory.
NSIMPLEX_API at::Tensor mask_distances(const TupleBatch& masks);

}  // namespace nsimplex

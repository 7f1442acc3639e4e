#pragma once

#include <cstdint>
#include <vector>

#include "graph/adjacency.h"

namespace nsimplex::analysis {

/// The hypergraph of a mask: a row (i, j1, .., jN) for every admissible tuple J of the query i. In
/// one layer the node i receives from j1 .. jN; undirected rows are all their orders.
struct MaskHypergraph {
  graph::Adjacency receivers;  ///< of every node the others that receive from it
  graph::Adjacency skeleton;   ///< who shares a row with whom: the 1-skeleton
  std::vector<uint8_t> loops;  ///< whether some row of this node's has it among its sources
};

/// O(m N^2 log(n)).
MaskHypergraph mask_hypergraph(const graph::TupleView& simplices);

/// Steps along the rows of `neighbours` from a node to every other: [n], -1 where there is no way.
/// O(n + edges).
std::vector<int64_t> distances_from(const graph::Adjacency& neighbours, int64_t node);

/// How far it is through the nodes first .. last - 1, which have no neighbours outside.
struct Extent {
  std::vector<int64_t> eccentricities;  ///< of each node: to the farthest; -1: not all are reached
  int64_t radius = -1;    ///< the least of nodes that reach all, the centres; -1: there is none
  int64_t diameter = -1;  ///< the largest; -1: some node does not reach all
};

/// A search from every node: O(n (n + edges)).
Extent extent_of(const graph::Adjacency& neighbours, int64_t first, int64_t last);

/// The second smallest eigenvalue of the normalised Laplacian I - D^-1/2 A D^-1/2 of these nodes: 0
/// where they are not connected, NaN for less than two. See graph::second_eigenvalue().
double spectral_gap(const graph::Adjacency& skeleton, int64_t first, int64_t last);

}  // namespace nsimplex::analysis

// Declares attention masks as hypergraphs.

#pragma once

#include <cstdint>
#include <vector>

#include "graph/adjacency.h"
#include "graph/tuple_lists.h"
#include "support/random.h"

namespace nsimplex::analysis {

/// The mask of one head: rows (i, j1, .., jN), with the rows of a query one after the other.
struct MaskRows {
  int64_t order = 1;                         ///< N
  std::vector<int64_t> values;               ///< [m, N + 1]
  std::vector<int64_t> row_offsets;          ///< [n + 1]: the rows of each query
  std::vector<int64_t> all_rows, all_nodes;  ///< {0, m} and {0, n}

  int64_t nodes() const { return std::ssize(row_offsets) - 1; }
  int64_t count() const { return row_offsets.back(); }
  graph::TupleView view() const {
    return {{values.data(), count(), order + 1}, all_rows, all_nodes};
  }
};

/// The keys of each query, ascending.
using KeySets = std::vector<std::vector<int64_t>>;

/// The last `width` positions, the query's own included.
KeySets window_keys(int64_t nodes, int64_t width);

/// The positions that are at most `reach` away, before and after.
KeySets band_keys(int64_t nodes, int64_t reach);

/// The query's own position and count - 1 others, drawn separately for each query.
KeySets random_keys(int64_t nodes, int64_t count, RandomStream& random);

/// Every combination of a query's keys, as admitted by a window or a top-k set on every axis.
MaskRows product_mask(const KeySets& keys, int64_t order);

/// Chains: j1 is a key of the query, j2 one of j1, and so on.
MaskRows path_mask(const KeySets& keys, int64_t order);

/// The hypergraph of a mask: a row (i, j1, .., jN) for every admissible tuple J of query i. In one
/// layer node i receives from j1 .. jN. Undirected rows stand for all their permutations.
struct MaskHypergraph {
  graph::Adjacency receivers;  ///< for every node, the others that receive from it
  graph::Adjacency skeleton;   ///< which nodes share a row: the 1-skeleton
  /// whether some row with this node as target has it among its sources
  std::vector<uint8_t> loops;
};

/// O(m N^2 log(n)).
MaskHypergraph mask_hypergraph(const graph::TupleView& simplices);

/// Distances along the rows of `neighbours` from a node to every other: [n], -1 if there is no
/// path. O(n + edges).
std::vector<int64_t> distances_from(const graph::Adjacency& neighbours, int64_t node);

/// Distances within the nodes first .. last - 1, which have no neighbours outside.
struct Extent {
  /// of each node: distance to the farthest; -1: some node is not reached
  std::vector<int64_t> eccentricities;
  int64_t radius = -1;    ///< the least of nodes that reach all, the centres; -1: none
  int64_t diameter = -1;  ///< the largest; -1: some node does not reach all
};

/// A search from every node: O(n (n + edges)).
Extent extent_of(const graph::Adjacency& neighbours, int64_t first, int64_t last);

/// The second smallest eigenvalue of the normalised Laplacian I - D^-1/2 A D^-1/2 of these nodes: 0
/// if they are not connected, NaN for fewer than two. See graph::second_eigenvalue().
double spectral_gap(const graph::Adjacency& skeleton, int64_t first, int64_t last);

}  // namespace nsimplex::analysis

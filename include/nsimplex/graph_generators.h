#pragma once

#include <nsimplex/graph.h>

#include <optional>

/// Graphs and sets that are made rather than read. Graphs are undirected, without loops.
namespace nsimplex {

/// Chains 0 - 1 - .. - (n - 1), one for each number in `nodes`, int64 [B].
NSIMPLEX_API TupleBatch chain_graphs(const at::Tensor& nodes);

/// A graph that grows by preferential attachment: node `links` is joined to all before it, every
/// later one to `links` different nodes, each drawn with a probability in proportion to its links
/// so far. links (nodes - links) edges; a few hubs, most nodes near `links`. The same on every
/// machine for the same seed. O(edges log(edges)) expected.
///
/// Source: Barabasi and Albert, "Emergence of scaling in random networks", Science 286 (1999).
NSIMPLEX_API TupleBatch barabasi_albert_graph(int64_t nodes, int64_t links, int64_t seed);

/// Points of many sets, one set after the other: what graphs are made of.
struct PointSets {
  at::Tensor points;        ///< fp32 [n, 2], in the unit square
  at::Tensor node_offsets;  ///< int64 [sets + 1], from 0 to n: the points of each set
};

/// Sets of uniform points in the unit square, each of least .. most points, every number as likely.
/// Coordinates are multiples of 2^-22 below 1, and the points of a set differ. The same on every
/// machine for the same seed; a set does not depend on how many there are.
NSIMPLEX_API PointSets random_point_sets(int64_t sets, int64_t least, int64_t most, int64_t seed);

/// The edges of the Delaunay triangulation of each set of points: no circle through the corners of
/// a triangle has a point inside. points: floating point [n, 2]; node_offsets: int64 [B + 1], one
/// set without it.
///
/// Exact for points on a grid, to which every set is moved first: 2^22 steps in the smallest power
/// of two that is not below its extent in x or y. Points of random_point_sets() are on it already;
/// others move by half a step at most, 2^-23 of a unit square. Points on one line are joined to
/// their neighbours on it, two points to each other; where more than three lie on an empty circle,
/// the polygon is cut into triangles from its lowest number on.
///
/// Errors: c10::ValueError for a NaN or infinity, other shapes, and two points of a set that are
/// equal on the grid. Complexity: O(n log n), sets in parallel.
NSIMPLEX_API TupleBatch delaunay_graph(
    const at::Tensor& points, const std::optional<at::Tensor>& node_offsets = std::nullopt);

}  // namespace nsimplex

// Declares random graphs and random sets of points.

#pragma once

#include <cstdint>
#include <vector>

namespace nsimplex::graph {

/// The edges (i, j), i < j, of a graph that grows by preferential attachment, in the order of j.
/// Node `links` is joined to all nodes before it. Every later node is joined to `links` different
/// nodes, each drawn in proportion to its current degree. links >= 1; there are links (nodes -
/// links) edges. The same seed gives the same graph on every machine. O(edges) expected.
std::vector<int64_t> preferential_attachment(int64_t nodes, int64_t links, uint64_t seed);

/// This many points of a grid are almost surely different, and cheap to draw again if they are not.
inline constexpr int64_t kMostPoints = int64_t{1} << 20;

/// Sets of points in the unit square.
struct PointSets {
  std::vector<float> coordinates;      ///< [n, 2]
  std::vector<int64_t> offsets = {0};  ///< [sets + 1]: the points of each set
};

/// Sets of least .. most points, all numbers equally likely. Points are uniform over multiples of
/// 2^-22 in [0, 1). They differ within a set, which is drawn again if two are equal. The same seed
/// gives the same sets on every machine, and a set does not depend on the number of sets.
PointSets random_points(int64_t sets, int64_t least, int64_t most, uint64_t seed);

}  // namespace nsimplex::graph

#pragma once

#include <cstdint>
#include <vector>

namespace nsimplex::graph {

/// The edges (i, j), i < j, of a graph that grows by preferential attachment, in the order of j:
/// node `links` is joined to all before it, every later one to `links` different nodes, each drawn
/// with a probability in proportion to its links so far. links >= 1; links (nodes - links) edges.
/// The same on every machine for the same seed. O(edges) expected.
std::vector<int64_t> preferential_attachment(int64_t nodes, int64_t links, uint64_t seed);

/// So many points of a grid are almost surely different, and cheap to draw again where not.
inline constexpr int64_t kMostPoints = int64_t{1} << 20;

/// Sets of points in the unit square.
struct PointSets {
  std::vector<float> coordinates;      ///< [n, 2]
  std::vector<int64_t> offsets = {0};  ///< [sets + 1]: the points of each set
};

/// Sets of least .. most points, every number of them as likely; points are uniform over multiples
/// of 2^-22 in [0, 1) and different within a set, which is drawn again where two are equal. The
/// same on every machine for the same seed, and a set does not depend on how many there are.
PointSets random_points(int64_t sets, int64_t least, int64_t most, uint64_t seed);

}  // namespace nsimplex::graph

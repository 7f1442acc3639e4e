#pragma once

#include <cstdint>
#include <vector>

namespace nsimplex::graph {

/// The edges (i, j), i < j, of a graph that grows by preferential attachment, in the order of j:
/// node `links` is joined to all before it, every later one to `links` different nodes, each drawn
/// with a probability in proportion to its links so far. links >= 1; links (nodes - links) edges.
/// The same on every machine for the same seed. O(edges) expected.
std::vector<int64_t> preferential_attachment(int64_t nodes, int64_t links, uint64_t seed);

}  // namespace nsimplex::graph

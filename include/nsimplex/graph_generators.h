#pragma once

#include <nsimplex/graph.h>

/// Graphs that are made rather than read. Undirected, without loops.
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

}  // namespace nsimplex

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "io/graph6.h"

namespace nsimplex::equivariant {

/// What can be told apart of graphs by colour refinement, the exact yardstick of equivariant
/// layers: entry g of the result is the number of the kind of graph g, kinds being counted in the
/// order of their first graph. Graphs of one kind are the same to every network of equivariant
/// layers on all tuples of `order`, whatever its depth and width; layers that sum can tell all
/// others apart.
///
/// Order 2 colours nodes: the new colour of u is its old one and the multiset over all nodes w of
/// (whether u and w are neighbours, colour of w). This is 1-WL. Order 3 colours pairs, the new
/// colour of (u, v) being its old one and the multiset over w of (colour of (u, w), colour of
/// (w, v)), from the three colours equal, neighbours and neither. This is the folklore 2-WL test,
/// as strong as 3-WL on triples. Both go on until no graph has more colours than before, and then
/// the multisets of colours are compared. Signatures are compared in full: nothing is hashed away.
///
/// A round takes O(n^order log n) for each graph; memory is O(n^order) at most, for the signatures
/// of all colours. `between_rounds`, where given, is called before every graph of every round, to
/// stop by an exception.
///
/// Sources: Cai, Fuerer and Immerman, "An optimal lower bound on the number of variables for graph
/// identification", Combinatorica 12 (1992); Maron et al., arXiv 1905.11136 (order k as k-WL).
std::vector<int64_t> refine_colours(std::span<const io::SimpleGraph> graphs, int64_t order,
                                    const std::function<void()>& between_rounds = {});

}  // namespace nsimplex::equivariant

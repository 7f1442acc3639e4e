#pragma once

#include "graph/tuple_view.h"

// Lists of tuples made from nodes or from other lists. Rows ascend lexicographically, each comes
// once; since nodes are numbered through the batch, the rows of a graph are together.

namespace nsimplex::graph {

/// The highest order of tuples that are made: enumerations go one level deeper for each entry.
inline constexpr int64_t kMostOrder = 64;

/// The most entries of a list that is made, 32 GiB of them; functions that would make more throw an InputError before
/// they do.
inline constexpr int64_t kMostEntries = int64_t{1} << 32;

/// The rows (of one entry or more, in [0, limit)) in lexicographic order, of equal ones the first.
TupleList sorted_unique(const TupleList& list, int64_t limit);

/// How many tuples complete_tuples() makes of a graph with `nodes` nodes; -1 beyond int64.
int64_t complete_count(int64_t nodes, int64_t order, Symmetry symmetry, bool loops);

/// All tuples of the nodes of every graph: n^k when ordered, n (n - 1) .. (n - k + 1) without
/// repeated entries, one of every multiset (with loops) or set when undirected. A tuple with any
/// equal entries counts as a loop here. Values only; `origin` is -1. `order` is at most kMostOrder.
TupleList complete_tuples(std::span<const int64_t> node_offsets, int64_t order, Symmetry symmetry,
                          bool loops);

/// The batch's tuples and (i, .., i) for every node that lacks it.
TupleList with_loops(const TupleView& batch);

/// Every order of the entries of every tuple; of equal ones only one.
TupleList all_orders(const TupleView& batch);

/// E -> E': all tuples of `order` entries over the entries of each tuple, whatever tuples share
/// merged; with distinct entries when loop_free, ascending when undirected. For order 0 the empty
/// tuple of every graph. `order` is at most the batch's and kMostOrder. `origin` is the first row of those that
/// a tuple came from.
TupleList project(const TupleView& batch, int64_t order, Symmetry symmetry);

/// For graphs that own the nodes of `node_offsets`, how many rows lie before each graph's: [B + 1].
std::vector<int64_t> offsets_of_sorted(const TupleList& list,
                                       std::span<const int64_t> node_offsets);

}  // namespace nsimplex::graph

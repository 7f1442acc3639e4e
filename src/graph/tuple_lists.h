// Declares lists of node tuples, views of them, and their sorting.

#pragma once

#include <nsimplex/symmetry.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/size_limits.h"

namespace nsimplex::graph {

/// A matrix int64 [count, width], one row after the other.
struct Rows {
  const int64_t* values = nullptr;
  int64_t count = 0, width = 0;

  std::span<const int64_t> operator[](int64_t row) const {
    return {values + row * width, static_cast<size_t>(width)};
  }
  std::span<const int64_t> all() const { return {values, static_cast<size_t>(count * width)}; }
};

/// Compares rows of one width in lexicographic order. A plain loop, since they are too short for
/// memcmp.
inline std::strong_ordering compare_rows(std::span<const int64_t> a, std::span<const int64_t> b) {
  size_t i = 0;
  while (i < a.size() && a[i] == b[i]) ++i;
  return i == a.size() ? std::strong_ordering::equal : a[i] <=> b[i];
}

/// Whether row `a` comes before row `b` in lexicographic order; equal rows do not.
inline bool row_before(const Rows& rows, int64_t a, int64_t b) {
  return compare_rows(rows[a], rows[b]) < 0;
}

inline bool rows_equal(const Rows& rows, int64_t a, int64_t b) {
  return compare_rows(rows[a], rows[b]) == 0;
}

struct SortedRows {
  std::vector<int64_t> values;  ///< the rows
  std::vector<int64_t> order;   ///< the original number of each row
};

/// Sorts rows in lexicographic order; equal ones keep their order. Entries are in [0, limit). A
/// radix sort: O(count width log(limit)) time, and memory for two copies of the numbers.
SortedRows sort_rows(const Rows& rows, int64_t limit);

/// A checked TupleBatch (nsimplex/graph.h) without Torch.
struct TupleView {
  Rows tuples;
  std::span<const int64_t> tuple_offsets, node_offsets;
  Symmetry symmetry = Symmetry::ordered;

  int64_t graphs() const { return static_cast<int64_t>(tuple_offsets.size()) - 1; }
  int64_t nodes() const { return node_offsets.back(); }
};

/// Whether two lists hold the same tuples of the same graphs, row by row.
inline bool same_tuples(const TupleView& a, const TupleView& b) {
  return a.symmetry == b.symmetry && a.tuples.width == b.tuples.width &&
         std::ranges::equal(a.node_offsets, b.node_offsets) &&
         std::ranges::equal(a.tuple_offsets, b.tuple_offsets) &&
         std::ranges::equal(a.tuples.all(), b.tuples.all());
}

/// Tuples that were made from others.
struct TupleList {
  int64_t width = 0;
  std::vector<int64_t> values;  ///< [count, width], one after the other
  std::vector<int64_t> origin;  ///< [count]: the source row of each, -1 if there is none

  int64_t count() const { return static_cast<int64_t>(origin.size()); }
  Rows rows() const { return {values.data(), count(), width}; }
  void reserve(int64_t tuples) {
    values.reserve(tuples * width);
    origin.reserve(tuples);
  }
  void add(std::span<const int64_t> tuple, int64_t from) {
    values.insert(values.end(), tuple.begin(), tuple.end());
    origin.push_back(from);
  }
};

}  // namespace nsimplex::graph

// Lists of tuples made from nodes or from other lists. Rows ascend lexicographically without
// repetitions. Since nodes are numbered through the batch, the rows of a graph are together.

namespace nsimplex::graph {

/// The highest order of generated tuples: enumerations go one level deeper for each entry.
inline constexpr int64_t kMostOrder = 64;

/// The most entries of a generated list. Functions that would make more throw an InputError first.
inline constexpr int64_t kMostEntries = kMostMade;

/// The rows (of one entry or more, in [0, limit)) in lexicographic order; of equal ones, the first.
TupleList sorted_unique(const TupleList& list, int64_t limit);

/// The number of tuples that complete_tuples() makes of a graph with `nodes` nodes; -1 beyond
/// int64.
int64_t complete_count(int64_t nodes, int64_t order, Symmetry symmetry, bool loops);

/// All tuples of the nodes of every graph: n^k when ordered, n (n - 1) .. (n - k + 1) without
/// repeated entries; when undirected, one per multiset (with loops) or set. Here a tuple with any
/// equal entries counts as a loop. Values only; `origin` is -1. `order` is at most kMostOrder.
TupleList complete_tuples(std::span<const int64_t> node_offsets, int64_t order, Symmetry symmetry,
                          bool loops);

/// The batch's tuples and (i, .., i) for every node that lacks it.
TupleList with_loops(const TupleView& batch);

/// Every permutation of every tuple; of equal ones only one.
TupleList all_orders(const TupleView& batch);

/// E -> E': all tuples of `order` entries over the entries of each tuple, without duplicates. They
/// have distinct entries when loop_free and ascend when undirected. For order 0 it is the empty
/// tuple of every graph. `order` is at most the batch's and kMostOrder. `origin` is the first row
/// that gave the tuple.
TupleList project(const TupleView& batch, int64_t order, Symmetry symmetry);

/// The number of rows before each graph's, for graphs that own the nodes of `node_offsets`: [B +
/// 1].
std::vector<int64_t> offsets_of_sorted(const TupleList& list,
                                       std::span<const int64_t> node_offsets);

/// The first thing that is wrong with an unchecked batch, worded as "argument: expected .., got
/// ..", or none. `tuples` is what the list of tuples is called there.
std::optional<std::string> find_tuple_fault(const TupleView& batch, const char* tuples = "tuples");

/// The first fault of offsets, which must rise from 0.
std::optional<std::string> find_offset_fault(const char* name, std::span<const int64_t> offsets);

/// "(1, 4)"
std::string to_string(std::span<const int64_t> tuple);

}  // namespace nsimplex::graph

#pragma once

#include <nsimplex/equivariant_classes.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "graph/rows.h"
#include "graph/tuple_view.h"

// Which input tuples meet which output tuples: what every sparse layer between two lists of tuples
// looks up, be it a sum or attention. Plain C++; graphs of a batch never meet, since their nodes
// have different numbers.

namespace nsimplex::equivariant {

using Blocks = std::vector<int8_t>;  ///< numbers of blocks of a pattern

/// The tuples of a list that have one equality pattern, as tuples of distinct nodes.
struct PatternRows {
  Partition pattern;
  std::vector<int64_t> rows;    ///< of the list, ascending
  std::vector<int64_t> graphs;  ///< of each
  std::vector<int64_t> nodes;   ///< [rows, blocks]: the node of each block

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
};

/// Tuples of one pattern that agree on the nodes of some blocks, group by group: a neighbour list.
/// Where no block is kept, those of one graph.
struct TupleGroups {
  int64_t width = 0;             ///< of a key
  std::vector<int64_t> keys;     ///< [groups, width], ascending: the nodes, or the graph
  std::vector<int64_t> offsets;  ///< [groups + 1]
  std::vector<int64_t> members;  ///< numbers among the pattern's rows, by group, ascending within

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  graph::Rows key_rows() const { return {keys.data(), size(), width}; }
};

/// A list of tuples by pattern, in the order of the patterns. With `all_orders` every tuple comes
/// in all the orders of its entries: what an undirected list stands for.
std::vector<PatternRows> rows_by_pattern(const graph::TupleView& list, bool all_orders);

/// Input and output tuples, joined on shared blocks. Groups and look-ups are made when asked for
/// and kept: each in O(m + m') time by radix sorts and merging.
class TupleJoin {
 public:
  /// The views are read here only. An undirected input counts in all orders; an output is as
  /// stored.
  TupleJoin(const graph::TupleView& input, const graph::TupleView& output);
  TupleJoin(const TupleJoin&) = delete;  // points into itself
  TupleJoin& operator=(const TupleJoin&) = delete;

  const std::vector<PatternRows>& inputs() const { return inputs_; }
  const std::vector<PatternRows>& outputs() const { return outputs_; }

  /// Whether outputs() are inputs(): one list is joined with itself, and no tuple of it counts in
  /// other orders than its own.
  bool one_list() const { return one_list_; }

  /// The input tuples of a pattern (a number into inputs()) by the nodes of the blocks `kept`,
  /// ascending.
  const TupleGroups& groups(size_t input, const Blocks& kept);

  /// The output tuples of a pattern (a number into outputs()) in the same way.
  TupleGroups output_groups(size_t output, const Blocks& kept);

  /// For every output tuple of a pattern, the group of groups(input, kept) whose nodes are those of
  /// the output's blocks `images`, in this order, or -1.
  const std::vector<int64_t>& lookup(size_t output, const Blocks& images, size_t input,
                                     const Blocks& kept);

 private:
  const graph::SortedRows& sorted(const PatternRows& tuples, const Blocks& blocks);

  bool one_list_;
  std::vector<PatternRows> inputs_, outputs_;
  // Of each output pattern the input pattern that has the same tuples, or itself: what is sorted
  // for both.
  std::vector<const PatternRows*> sorted_as_;
  int64_t limit_ = 0;  // above all nodes and graphs
  std::map<std::pair<size_t, Blocks>, TupleGroups> groups_;
  std::map<std::pair<const PatternRows*, Blocks>, graph::SortedRows> sorted_;
  std::map<std::tuple<size_t, Blocks, size_t, Blocks>, std::vector<int64_t>> lookups_;
};

}  // namespace nsimplex::equivariant

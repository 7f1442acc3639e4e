// Declares the join of two tuple lists on shared nodes.

#pragma once

#include <nsimplex/equivariant_classes.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/tuple_lists.h"

namespace nsimplex::equivariant {

/// Calls visit(matching, sign) for `match` and all partial matchings that extend it. An extension
/// maps unmatched input blocks (-1) from `from` on to unmatched output blocks. The sign is that of
/// inclusion-exclusion, (-1)^(pairs added). `match` is unchanged afterwards.
template <class Visit>
void for_each_extension(std::vector<int8_t>& match, size_t from, int64_t output_blocks, int sign,
                        Visit&& visit) {
  if (from == match.size()) {
    visit(match, sign);
    return;
  }
  for_each_extension(match, from + 1, output_blocks, sign, visit);
  if (match[from] >= 0) return;
  for (int8_t block = 0; block < output_blocks; ++block) {
    if (std::find(match.begin(), match.end(), block) != match.end()) continue;
    match[from] = block;
    for_each_extension(match, from + 1, output_blocks, -sign, visit);
    match[from] = -1;
  }
}

/// The input blocks of a matching and their output blocks.
struct MatchedBlocks {
  std::vector<int8_t> kept, images;
};
inline MatchedBlocks matched_blocks(const std::vector<int8_t>& match) {
  MatchedBlocks blocks;
  for (size_t block = 0; block < match.size(); ++block) {
    if (match[block] < 0) continue;
    blocks.kept.push_back(static_cast<int8_t>(block));
    blocks.images.push_back(match[block]);
  }
  return blocks;
}

}  // namespace nsimplex::equivariant

// Joins two lists of tuples on shared nodes. Every sparse layer, of sums or of attention, looks up
// its input tuples by this join. Plain C++. Tuples of different graphs of a batch never match,
// because their nodes have different numbers.

namespace nsimplex::equivariant {

using Blocks = std::vector<int8_t>;  ///< numbers of blocks of a pattern

/// The tuples of a list that have one equality pattern, as tuples of distinct nodes.
struct PatternRows {
  Partition pattern;
  std::vector<int64_t> rows;    ///< of the list, ascending
  std::vector<int64_t> graphs;  ///< per row
  std::vector<int64_t> nodes;   ///< [rows, blocks]: the node of each block

  int64_t size() const { return static_cast<int64_t>(rows.size()); }
};

/// Tuples of one pattern that agree on the nodes of some blocks, group by group (a neighbour list).
/// Without kept blocks, a group contains the tuples of one graph.
struct TupleGroups {
  int64_t width = 0;             ///< width of a key
  std::vector<int64_t> keys;     ///< [groups, width], ascending: the nodes, or the graph
  std::vector<int64_t> offsets;  ///< [groups + 1]
  std::vector<int64_t> members;  ///< numbers among the pattern's rows, by group, ascending within

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  graph::Rows key_rows() const { return {keys.data(), size(), width}; }
};

/// The tuples of a list by pattern, in the order of the patterns. With `all_orders`, every tuple
/// occurs in all orders of its entries, as an undirected list means it.
std::vector<PatternRows> rows_by_pattern(const graph::TupleView& list, bool all_orders);

/// Input and output tuples, joined on shared blocks. Groups and look-ups are computed on request
/// and kept. Each takes O(m + m') time by radix sorts and merging.
class TupleJoin {
 public:
  /// Only the constructor reads the views. Tuples of an undirected input count in all orders; those
  /// of an output count as stored.
  TupleJoin(const graph::TupleView& input, const graph::TupleView& output);
  /// The input of another join with other outputs of the same graphs. Both share the results for
  /// the input.
  TupleJoin(const TupleJoin& other, std::vector<PatternRows> outputs);
  TupleJoin(const TupleJoin&) = delete;  // points into itself
  TupleJoin& operator=(const TupleJoin&) = delete;

  const std::vector<PatternRows>& inputs() const { return input_->patterns; }
  const std::vector<PatternRows>& outputs() const { return outputs_; }

  /// Whether outputs() are inputs(): one list is joined with itself, and its tuples count in their
  /// own order only.
  bool one_list() const { return one_list_; }

  /// The input tuples of a pattern (a number of inputs()), grouped by the nodes of the blocks
  /// `kept` (ascending).
  const TupleGroups& groups(size_t input, const Blocks& kept);

  /// The output tuples of a pattern (a number of outputs()) in the same way.
  const TupleGroups& output_groups(size_t output, const Blocks& kept);

  /// For every group of output_groups(output, images), the group of groups(input, kept) with the
  /// same nodes in the order of `images`, or -1. The groups that exist are in ascending order.
  std::vector<int64_t> matches(size_t output, const Blocks& images, size_t input,
                               const Blocks& kept);

  /// For every output tuple of a pattern, the group of groups(input, kept) whose nodes are those of
  /// the output's blocks `images` in this order, or -1.
  const std::vector<int64_t>& lookup(size_t output, const Blocks& images, size_t input,
                                     const Blocks& kept);

 private:
  using GroupsByBlocks = std::map<std::pair<size_t, Blocks>, TupleGroups>;

  // Tuples by pattern, and the results for them.
  struct Input {
    std::vector<PatternRows> patterns;
    GroupsByBlocks groups;
  };

  void find_twins();
  const TupleGroups& known_groups(GroupsByBlocks& known, size_t number, const PatternRows& tuples,
                                  const Blocks& kept) const;

  bool one_list_;
  std::shared_ptr<Input> input_;
  std::vector<PatternRows> outputs_;
  // For each output pattern, the input pattern with the same tuples, or -1. Both share their
  // groups.
  std::vector<int64_t> twins_;
  GroupsByBlocks output_groups_;
  int64_t limit_ = 0;  // larger than all nodes and graphs
  std::map<std::tuple<size_t, Blocks, size_t, Blocks>, std::vector<int64_t>> lookups_;
};

}  // namespace nsimplex::equivariant

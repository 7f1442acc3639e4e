#include "equivariant/join/tuple_join.h"

#include <algorithm>
#include <compare>
#include <span>
#include <tuple>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {
namespace {

// The equality pattern of a tuple and the node of each block, which are written over: a call for
// every row of a list, so that nothing is allocated and lengths are few enough for plain loops.
struct FoundPattern {
  Partition pattern;
  std::vector<int64_t> nodes;  // `blocks` of them count
  size_t blocks = 0;

  void find(std::span<const int64_t> tuple) {
    pattern.resize(tuple.size());
    nodes.resize(tuple.size());
    blocks = 0;
    for (size_t i = 0; i < tuple.size(); ++i) {
      size_t block = 0;
      while (block < blocks && nodes[block] != tuple[i]) ++block;
      if (block == blocks) nodes[blocks++] = tuple[i];
      pattern[i] = static_cast<int8_t>(block);
    }
  }

  bool is(const Partition& other) const {
    size_t i = 0;
    while (i < other.size() && pattern[i] == other[i]) ++i;
    return i == other.size();
  }
};

std::vector<int64_t> keys_of(const PatternRows& tuples, const Blocks& blocks) {
  if (blocks.empty()) return tuples.graphs;
  const int64_t width = block_count(tuples.pattern);
  std::vector<int64_t> keys;
  keys.reserve(tuples.size() * blocks.size());
  for (int64_t row = 0; row < tuples.size(); ++row) {
    for (const int8_t block : blocks) keys.push_back(tuples.nodes[row * width + block]);
  }
  return keys;
}

// Where no block is kept the key is the graph.
int64_t key_width(const Blocks& blocks) { return std::max<int64_t>(std::ssize(blocks), 1); }

TupleGroups groups_of(const graph::SortedRows& by_key, const Blocks& kept) {
  TupleGroups groups;
  groups.width = key_width(kept);
  const auto count = std::ssize(by_key.order);
  const graph::Rows keys{by_key.values.data(), count, groups.width};
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !graph::rows_equal(keys, i - 1, i)) {
      groups.offsets.push_back(i);
      groups.keys.insert(groups.keys.end(), keys[i].begin(), keys[i].end());
    }
  }
  groups.offsets.push_back(count);
  groups.members = by_key.order;
  return groups;
}

std::strong_ordering compare(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::vector<PatternRows> rows_by_pattern(const graph::TupleView& list, bool all_orders) {
  std::map<Partition, PatternRows> by_pattern;
  std::vector<int64_t> tuple;
  FoundPattern found;
  // Neighbours mostly have one pattern: the map is asked when it changes.
  PatternRows* current = nullptr;
  const auto add = [&](std::span<const int64_t> entries, int64_t row, int64_t graph) {
    found.find(entries);
    if (current == nullptr || !found.is(current->pattern)) {
      current = &by_pattern[found.pattern];
      current->pattern = found.pattern;
    }
    current->rows.push_back(row);
    current->graphs.push_back(graph);
    for (size_t block = 0; block < found.blocks; ++block) {
      current->nodes.push_back(found.nodes[block]);
    }
  };
  for (int64_t graph = 0; graph < list.graphs(); ++graph) {
    for (int64_t row = list.tuple_offsets[graph]; row < list.tuple_offsets[graph + 1]; ++row) {
      const auto stored = list.tuples[row];
      if (!all_orders) {
        add(stored, row, graph);
        continue;
      }
      tuple.assign(stored.begin(), stored.end());
      std::sort(tuple.begin(), tuple.end());
      do {
        add(tuple, row, graph);
      } while (std::next_permutation(tuple.begin(), tuple.end()));
    }
  }
  std::vector<PatternRows> result;
  for (auto& [pattern, rows] : by_pattern) result.push_back(std::move(rows));
  return result;
}

TupleJoin::TupleJoin(const graph::TupleView& input, const graph::TupleView& output)
    : one_list_(input.symmetry != Symmetry::undirected && graph::same_tuples(input, output)),
      inputs_(rows_by_pattern(input, input.symmetry == Symmetry::undirected)),
      outputs_(one_list_ ? inputs_ : rows_by_pattern(output, /*all_orders=*/false)),
      limit_(std::max({input.node_offsets.back(), output.node_offsets.back(), input.graphs(),
                       output.graphs()})) {
  for (const PatternRows& own : outputs_) {
    const auto twin = std::ranges::find_if(inputs_, [&](const PatternRows& each) {
      return each.nodes == own.nodes && each.graphs == own.graphs;
    });
    sorted_as_.push_back(twin == inputs_.end() ? &own : &*twin);
  }
}

const graph::SortedRows& TupleJoin::sorted(const PatternRows& tuples, const Blocks& blocks) {
  const auto [place, is_new] = sorted_.try_emplace({&tuples, blocks});
  if (is_new) {
    const std::vector<int64_t> keys = keys_of(tuples, blocks);
    place->second = graph::sort_rows({keys.data(), tuples.size(), key_width(blocks)}, limit_);
  }
  return place->second;
}

const TupleGroups& TupleJoin::groups(size_t input, const Blocks& kept) {
  const auto [place, is_new] = groups_.try_emplace({input, kept});
  if (is_new) place->second = groups_of(sorted(inputs_[input], kept), kept);
  return place->second;
}

TupleGroups TupleJoin::output_groups(size_t output, const Blocks& kept) {
  return groups_of(sorted(*sorted_as_[output], kept), kept);
}

const std::vector<int64_t>& TupleJoin::lookup(size_t output, const Blocks& images, size_t input,
                                              const Blocks& kept) {
  const auto [place, is_new] = lookups_.try_emplace({output, images, input, kept});
  std::vector<int64_t>& found = place->second;
  if (!is_new) return found;
  const PatternRows& tuples = outputs_[output];
  const graph::SortedRows& by_key = sorted(*sorted_as_[output], images);
  const graph::Rows keys{by_key.values.data(), tuples.size(), key_width(images)};
  const TupleGroups& all = groups(input, kept);
  const graph::Rows group_keys = all.key_rows();
  found.assign(tuples.size(), -1);
  int64_t group = 0;
  for (int64_t i = 0; i < keys.count; ++i) {  // both ascend: a merge
    auto order = std::strong_ordering::greater;
    while (group < group_keys.count && (order = compare(keys[i], group_keys[group])) > 0) ++group;
    if (group == group_keys.count) break;
    if (order == 0) found[by_key.order[i]] = group;
  }
  return found;
}

}  // namespace nsimplex::equivariant

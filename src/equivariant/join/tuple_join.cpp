// Joins two tuple lists on shared nodes, by equality pattern.

#include "equivariant/join/tuple_join.h"

#include <algorithm>
#include <compare>
#include <span>
#include <tuple>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {
namespace {

// The equality pattern of a tuple and the node of each block. The object is overwritten for every
// row of a list, so that nothing is allocated. The lengths are small enough for plain loops.
struct FoundPattern {
  Partition pattern;
  std::vector<int64_t> nodes;  // the first `blocks` entries are valid
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

// Without kept blocks, the key is the graph.
int64_t key_width(const Blocks& blocks) { return std::max<int64_t>(std::ssize(blocks), 1); }

TupleGroups groups_of(graph::SortedRows by_key, int64_t width) {
  TupleGroups groups;
  groups.width = width;
  const auto count = std::ssize(by_key.order);
  const graph::Rows keys{by_key.values.data(), count, width};
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !graph::rows_equal(keys, i - 1, i)) {
      groups.offsets.push_back(i);
      groups.keys.insert(groups.keys.end(), keys[i].begin(), keys[i].end());
    }
  }
  groups.offsets.push_back(count);
  groups.members = std::move(by_key.order);
  return groups;
}

}  // namespace

std::vector<PatternRows> rows_by_pattern(const graph::TupleView& list, bool all_orders) {
  std::map<Partition, PatternRows> by_pattern;
  std::vector<int64_t> tuple;
  FoundPattern found;
  // Consecutive tuples mostly have one pattern, so the map is only searched if it changes.
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
  result.reserve(by_pattern.size());
  for (auto& [pattern, rows] : by_pattern) result.push_back(std::move(rows));
  return result;
}

TupleJoin::TupleJoin(const graph::TupleView& input, const graph::TupleView& output)
    : one_list_(input.symmetry != Symmetry::undirected && graph::same_tuples(input, output)),
      input_(std::make_shared<Input>()),
      limit_(std::max({input.node_offsets.back(), output.node_offsets.back(), input.graphs(),
                       output.graphs()})) {
  input_->patterns = rows_by_pattern(input, input.symmetry == Symmetry::undirected);
  outputs_ = one_list_ ? input_->patterns : rows_by_pattern(output, /*all_orders=*/false);
  find_twins();
}

TupleJoin::TupleJoin(const TupleJoin& other, std::vector<PatternRows> outputs)
    : one_list_(false), input_(other.input_), outputs_(std::move(outputs)), limit_(other.limit_) {
  find_twins();
}

void TupleJoin::find_twins() {
  for (const PatternRows& own : outputs_) {
    const auto twin = std::ranges::find_if(inputs(), [&](const PatternRows& each) {
      return each.nodes == own.nodes && each.graphs == own.graphs;
    });
    twins_.push_back(twin == inputs().end() ? -1 : twin - inputs().begin());
  }
}

const TupleGroups& TupleJoin::known_groups(GroupsByBlocks& known, size_t number,
                                           const PatternRows& tuples, const Blocks& kept) const {
  const auto [place, is_new] = known.try_emplace({number, kept});
  if (is_new) {
    const std::vector<int64_t> keys = keys_of(tuples, kept);
    const int64_t width = key_width(kept);
    place->second = groups_of(graph::sort_rows({keys.data(), tuples.size(), width}, limit_), width);
  }
  return place->second;
}

const TupleGroups& TupleJoin::groups(size_t input, const Blocks& kept) {
  return known_groups(input_->groups, input, inputs()[input], kept);
}

const TupleGroups& TupleJoin::output_groups(size_t output, const Blocks& kept) {
  if (twins_[output] >= 0) return groups(static_cast<size_t>(twins_[output]), kept);
  return known_groups(output_groups_, output, outputs_[output], kept);
}

std::vector<int64_t> TupleJoin::matches(size_t output, const Blocks& images, size_t input,
                                        const Blocks& kept) {
  const TupleGroups &wanted = output_groups(output, images), &all = groups(input, kept);
  const graph::Rows wanted_keys = wanted.key_rows(), keys = all.key_rows();
  std::vector<int64_t> found(wanted.size(), -1);
  int64_t group = 0;
  for (int64_t g = 0; g < wanted.size(); ++g) {  // both ascend, so this is a merge
    auto order = std::strong_ordering::greater;
    while (group < all.size() && (order = graph::compare_rows(wanted_keys[g], keys[group])) > 0)
      ++group;
    if (group == all.size()) break;
    if (order == 0) found[g] = group;
  }
  return found;
}

const std::vector<int64_t>& TupleJoin::lookup(size_t output, const Blocks& images, size_t input,
                                              const Blocks& kept) {
  const auto [place, is_new] = lookups_.try_emplace({output, images, input, kept});
  std::vector<int64_t>& found = place->second;
  if (!is_new) return found;
  const TupleGroups& wanted = output_groups(output, images);
  const std::vector<int64_t> matched = matches(output, images, input, kept);
  found.resize(outputs_[output].size());
  for (int64_t g = 0; g < wanted.size(); ++g) {
    for (int64_t i = wanted.offsets[g]; i < wanted.offsets[g + 1]; ++i) {
      found[wanted.members[i]] = matched[g];
    }
  }
  return found;
}

}  // namespace nsimplex::equivariant

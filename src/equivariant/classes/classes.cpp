#include <c10/util/Exception.h>

#include <algorithm>
#include <map>

#include "equivariant/classes/partitions.h"

namespace nsimplex {
namespace {

using equivariant::block_count;

// What permuting the positions of the undirected sides leaves of a partition: for every block,
// which positions of each side it has, or how many where they may be permuted; as a set of blocks.
using Signature = std::vector<std::pair<int64_t, int64_t>>;

Signature signature(const Partition& partition, const TensorKind& input, const TensorKind& output) {
  Signature blocks(block_count(partition));
  const auto mark = [](int64_t& side, const TensorKind& kind, int64_t position) {
    side += kind.symmetry == Symmetry::undirected ? 1 : int64_t{1} << position;
  };
  for (int64_t p = 0; p < static_cast<int64_t>(partition.size()); ++p) {
    auto& [in, out] = blocks[partition[p]];
    p < input.order ? mark(in, input, p) : mark(out, output, p - input.order);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

bool distinct(const Partition& pattern) {
  return block_count(pattern) == static_cast<int64_t>(pattern.size());
}

void check_order(const TensorKind& input, const TensorKind& output, ClassSet set) {
  TORCH_CHECK_VALUE(input.order >= 0 && output.order >= 0,
                    "[equivariant_classes] input, output: expected orders of 0 or more, got ",
                    input.order, " -> ", output.order);
  const int64_t most = set == ClassSet::all ? kMaxClassOrder : kMaxLightOrder;
  TORCH_CHECK_VALUE(input.order <= most && output.order <= most - input.order,
                    "[equivariant_classes] order: expected k + l <= ", most, ", got ", input.order,
                    " -> ", output.order);
}

}  // namespace

std::vector<EquivariantClass> equivariant_classes(const TensorKind& input, const TensorKind& output,
                                                  ClassSet set) {
  check_order(input, output, set);
  std::vector<EquivariantClass> classes;
  std::map<Signature, size_t> orbits;
  for (Partition& partition : equivariant::all_partitions(input.order + output.order)) {
    const auto parts = equivariant::split(partition, input.order);
    if (!input.has_loops() && !distinct(parts.input)) continue;
    if (!output.has_loops() && !distinct(parts.output)) continue;
    const int64_t in = block_count(parts.input), out = block_count(parts.output);
    const int64_t key_only = std::count(parts.match.begin(), parts.match.end(), -1);
    if (set == ClassSet::light && key_only > 0) continue;
    const auto [orbit, is_new] =
        orbits.emplace(signature(partition, input, output), classes.size());
    if (is_new) classes.push_back({{}, key_only, out - (in - key_only), in - key_only});
    classes[orbit->second].members.push_back(std::move(partition));
  }
  return classes;
}

std::string partition_name(const Partition& partition, int64_t inputs) {
  const int64_t count = block_count(partition);
  if (count == 0) return "{}";
  std::vector<std::string> blocks(count, "{");
  for (int64_t p = 0; p < static_cast<int64_t>(partition.size()); ++p) {
    std::string& block = blocks[partition[p]];
    if (block.size() > 1) block += ' ';
    block += p < inputs ? 'i' : 'j';
    block += std::to_string(p < inputs ? p + 1 : p - inputs + 1);
  }
  std::string name;
  for (const std::string& block : blocks) name.append(block).push_back('}');
  return name;
}

int64_t bell_number(int64_t count) {
  TORCH_CHECK_VALUE(count >= 0 && count <= 20, "[bell_number] count: expected 0 to 20, got ",
                    count);
  // The Bell triangle: a row starts with the end of the one before.
  std::vector<int64_t> row{1};
  for (int64_t n = 1; n <= count; ++n) {
    std::vector<int64_t> next{row.back()};
    for (const int64_t above : row) next.push_back(next.back() + above);
    row = std::move(next);
  }
  return row.front();
}

}  // namespace nsimplex

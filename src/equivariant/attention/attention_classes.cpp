#include "equivariant/attention/attention_classes.h"

#include <algorithm>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {
namespace {

// Of every block, how many positions it has.
std::vector<int64_t> block_sizes(const Partition& pattern) {
  std::vector<int64_t> sizes(block_count(pattern), 0);
  for (const int8_t block : pattern) ++sizes[block];
  return sizes;
}

BlockKinds places(const Partition& pattern) {
  BlockKinds kinds(block_count(pattern));
  for (size_t block = 0; block < kinds.size(); ++block) kinds[block] = static_cast<int64_t>(block);
  return kinds;
}

}  // namespace

BlockKinds key_blocks(const Partition& pattern, const std::vector<int8_t>& match,
                      const TensorKind& input) {
  if (input.symmetry != Symmetry::undirected) return places(pattern);
  BlockKinds kinds = block_sizes(pattern);
  for (size_t block = 0; block < kinds.size(); ++block) {
    kinds[block] = 2 * kinds[block] + (match[block] >= 0 ? 1 : 0);
  }
  return kinds;
}

BlockKinds query_blocks(const Partition& pattern, const TensorKind& output) {
  return output.symmetry == Symmetry::undirected ? block_sizes(pattern) : places(pattern);
}

MapSignature map_signature(const EquivariantClass& light, const TensorKind& input,
                           const BlockKinds& blocks) {
  const SplitClass parts = split(light.members.front(), input.order);
  MapSignature signature;
  for (const int64_t kind : blocks) signature.emplace_back(kind, 0);
  for (int64_t p = 0; p < input.order; ++p) {
    int64_t& filled = signature[parts.match[parts.input[p]]].second;
    filled += input.symmetry == Symmetry::undirected ? 1 : int64_t{1} << p;
  }
  std::sort(signature.begin(), signature.end());
  return signature;
}

bool sees_one_free_node(const EquivariantClass& light, const TensorKind& input,
                        const std::vector<int8_t>& match) {
  const SplitClass parts = split(light.members.front(), input.order);
  return parts.match.size() == 1 && match[parts.match.front()] < 0;
}

}  // namespace nsimplex::equivariant

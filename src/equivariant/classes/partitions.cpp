// Enumerates set partitions, and computes their Moebius function and contractions.

#include "equivariant/classes/partitions.h"

#include <algorithm>

namespace nsimplex::equivariant {

std::map<Contraction, std::vector<ContractionUse>> contractions_of(
    std::span<const Partition> diagrams, int64_t inputs) {
  std::map<Contraction, std::vector<ContractionUse>> result;
  for (size_t d = 0; d < diagrams.size(); ++d) {
    const SplitClass parts = split(diagrams[d], inputs);
    Contraction contraction{parts.input, {}};
    ContractionUse use{static_cast<int64_t>(d), parts.output, {}};
    for (int8_t block = 0; block < static_cast<int8_t>(parts.match.size()); ++block) {
      if (parts.match[block] < 0) continue;
      contraction.kept.push_back(block);
      use.images.push_back(parts.match[block]);
    }
    result[contraction].push_back(std::move(use));
  }
  return result;
}

namespace {

void extend(Partition& partition, int64_t positions, int8_t blocks, std::vector<Partition>& all) {
  if (static_cast<int64_t>(partition.size()) == positions) {
    all.push_back(partition);
    return;
  }
  for (int8_t block = 0; block <= blocks; ++block) {
    partition.push_back(block);
    extend(partition, positions, static_cast<int8_t>(std::max<int>(blocks, block + 1)), all);
    partition.pop_back();
  }
}

}  // namespace

int64_t block_count(const Partition& partition) {
  return partition.empty() ? 0 : *std::max_element(partition.begin(), partition.end()) + 1;
}

std::vector<Partition> all_partitions(int64_t positions) {
  std::vector<Partition> all;
  Partition partition;
  extend(partition, positions, 0, all);
  return all;
}

Partition restricted(const Partition& partition, int64_t begin, int64_t end) {
  std::vector<int8_t> number(block_count(partition), -1);
  Partition result;
  int8_t next = 0;
  for (int64_t p = begin; p < end; ++p) {
    int8_t& block = number[partition[p]];
    if (block < 0) block = next++;
    result.push_back(block);
  }
  return result;
}

SplitClass split(const Partition& partition, int64_t inputs) {
  const auto positions = static_cast<int64_t>(partition.size());
  SplitClass parts{restricted(partition, 0, inputs), restricted(partition, inputs, positions), {}};
  // Input blocks come first, so their numbers are those of the whole partition.
  parts.match.assign(block_count(parts.input), -1);
  for (int64_t p = inputs; p < positions; ++p) {
    const auto block = static_cast<size_t>(partition[p]);
    if (block < parts.match.size()) parts.match[block] = parts.output[p - inputs];
  }
  return parts;
}

bool coarsens(const Partition& coarse, const Partition& fine) {
  std::vector<int8_t> image(block_count(fine), -1);
  for (size_t p = 0; p < fine.size(); ++p) {
    int8_t& block = image[fine[p]];
    if (block < 0) block = coarse[p];
    if (block != coarse[p]) return false;
  }
  return true;
}

int64_t moebius(const Partition& fine, const Partition& coarse) {
  std::vector<int8_t> image(block_count(fine), -1);
  for (size_t p = 0; p < fine.size(); ++p) image[fine[p]] = coarse[p];
  std::vector<int64_t> joined(block_count(coarse), 0);
  int64_t value = 1;
  // The m-th block that is joined multiplies by -(m - 1).
  for (const int8_t block : image) {
    if (const int64_t before = joined[block]++; before > 0) value *= -before;
  }
  return value;
}

}  // namespace nsimplex::equivariant

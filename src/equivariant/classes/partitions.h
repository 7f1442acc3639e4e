// Declares set partitions, their Moebius function and contractions.

#pragma once

#include <nsimplex/equivariant_classes.h>

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace nsimplex::equivariant {

/// The number of blocks of a partition: its largest number plus one.
int64_t block_count(const Partition& partition);

/// All partitions of `positions` items in lexicographic order.
std::vector<Partition> all_partitions(int64_t positions);

/// The partition of the positions [begin, end) by `partition`, with its blocks renumbered.
Partition restricted(const Partition& partition, int64_t begin, int64_t end);

/// A class of k -> l in parts: the patterns of its two sides, and which of their blocks are equal.
struct SplitClass {
  Partition input, output;
  std::vector<int8_t> match;  ///< for each block of the input, the block of the output or -1
};
SplitClass split(const Partition& partition, int64_t inputs);

/// Whether `coarse` joins blocks of `fine`.
bool coarsens(const Partition& coarse, const Partition& fine);

/// The Moebius function of the partition lattice between `fine` and a coarsening of it: the product
/// over blocks of (-1)^(m - 1) (m - 1)!, where m is the number of joined blocks.
int64_t moebius(const Partition& fine, const Partition& coarse);

/// A sum over some blocks of an input pattern: the diagonal of the pattern, summed over all blocks
/// except `kept`. All diagrams that share exactly these blocks with their outputs use it.
struct Contraction {
  Partition input;
  std::vector<int8_t> kept;  ///< ascending
  auto operator<=>(const Contraction&) const = default;
};

/// A diagram that uses a contraction: kept block b of the input is block images[b] of the output.
struct ContractionUse {
  int64_t diagram;
  Partition output;
  std::vector<int8_t> images;
};

/// The different sums that diagrams of k -> l need (k = `inputs`): 22 for the 203 of 3 -> 3.
std::map<Contraction, std::vector<ContractionUse>> contractions_of(
    std::span<const Partition> diagrams, int64_t inputs);

}  // namespace nsimplex::equivariant

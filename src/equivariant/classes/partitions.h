#pragma once

#include <nsimplex/equivariant_classes.h>

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace nsimplex::equivariant {

/// Blocks of a partition: one more than the largest number in it.
int64_t block_count(const Partition& partition);

/// All partitions of `positions` things in lexicographic order.
std::vector<Partition> all_partitions(int64_t positions);

/// The partition of positions [begin, end) that `partition` leaves, its blocks numbered anew.
Partition restricted(const Partition& partition, int64_t begin, int64_t end);

/// A class of k -> l, taken apart: the patterns of its two sides and which blocks of them are one.
struct SplitClass {
  Partition input, output;
  std::vector<int8_t> match;  ///< of each block of the input, the block of the output or -1
};
SplitClass split(const Partition& partition, int64_t inputs);

/// Whether `coarse` joins blocks of `fine`.
bool coarsens(const Partition& coarse, const Partition& fine);

/// The Moebius function of the partition lattice between `fine` and a coarsening of it: the product
/// over blocks of (-1)^(m - 1) (m - 1)!, m the number of blocks joined.
int64_t moebius(const Partition& fine, const Partition& coarse);

/// A sum over some blocks of an input pattern: the diagonal of the pattern, summed over all blocks
/// but `kept`. It serves every diagram that shares just these blocks with its output.
struct Contraction {
  Partition input;
  std::vector<int8_t> kept;  ///< ascending
  auto operator<=>(const Contraction&) const = default;
};

/// A diagram that a contraction serves: kept block b of the input is block images[b] of the output.
struct ContractionUse {
  int64_t diagram;
  Partition output;
  std::vector<int8_t> images;
};

/// The sums that diagrams of k -> l need (k = `inputs`), each once: 22 for the 203 of 3 -> 3.
std::map<Contraction, std::vector<ContractionUse>> contractions_of(
    std::span<const Partition> diagrams, int64_t inputs);

}  // namespace nsimplex::equivariant

#pragma once

#include <nsimplex/equivariant_classes.h>

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

}  // namespace nsimplex::equivariant

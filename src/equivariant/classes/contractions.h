#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {

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

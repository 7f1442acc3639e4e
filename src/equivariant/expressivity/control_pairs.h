#pragma once

#include <cstdint>
#include <vector>

#include "io/graph6.h"

namespace nsimplex::equivariant {

/// Pairs of graphs, one after the other, that 1-WL tells apart though both have the same degrees: a
/// random graph of 8 to 16 nodes and what switching its edges makes of it. Networks of order 2
/// must tell them apart as well. The same for the same seed.
std::vector<io::SimpleGraph> control_pairs(int64_t pairs, uint64_t seed);

}  // namespace nsimplex::equivariant

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Nodes by their lists of neighbours.
using Neighbours = std::vector<std::vector<int64_t>>;

/// Where the edges of a matrix lead: i -> j where A_ij is not 0. Rising numbers.
Neighbours effects_of(const Matrix& graph);

/// Where they come from.
Neighbours causes_of(const Matrix& graph);

/// The nodes with every cause before its effects, of several such orders the one with the least
/// numbers first; nothing where there is a cycle. O(M^2).
std::optional<std::vector<int64_t>> causal_order(const Matrix& graph);

}  // namespace nsimplex::causal

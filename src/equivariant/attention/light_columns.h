#pragma once

#include <vector>

#include "equivariant/attention/attention_plan.h"

namespace nsimplex::equivariant {

/// Writes the columns of a source, of the plan `all` of its light sums: those that few input tuples
/// make, and the others, among which is that of the map `own_map` (-1: of none). The map of each in
/// that order.
std::vector<int64_t> split_columns(const SumPlan& all, int64_t own_map, AttentionSource& source);

}  // namespace nsimplex::equivariant

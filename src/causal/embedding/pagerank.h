#pragma once

#include "causal/embedding/neighbours.h"
#include "causal/matrix.h"

namespace nsimplex::causal {

/// pi of Eq. 18: where a walk stays that goes from effects to causes, each by its share of the
/// effect's |A|, and with probability `restart` anywhere. Every acyclic graph has nodes without
/// causes, for which the equation says nothing; see DanglingRule. Sums to 1; power iteration until
/// it moves by less than 1e-12.
Eigen::ArrayXd causal_pagerank(const SparseGraph& graph, double restart, DanglingRule rule);

}  // namespace nsimplex::causal

#pragma once

#include <nsimplex/causal_synthetic_options.h>

#include <vector>

namespace nsimplex::causal {

/// cause, effect of each edge of a random DAG, one after the other. Its causal order is a random
/// permutation of the nodes, so that neither their numbers nor, in a scale free graph, their ages
/// tell it. ER: min(degree nodes, all pairs) edges, every set of so many pairs as likely;
/// SF: graph::preferential_attachment(). The same on every machine for the same seed.
std::vector<int64_t> random_dag(CausalGraph graph, int64_t nodes, int64_t degree, uint64_t seed);

}  // namespace nsimplex::causal

#pragma once

#include <nsimplex/causal_options.h>

#include "causal/structure/covariance.h"

namespace nsimplex::causal {

/// [M, M] weights of a graph to start from: regressions on the parents that BIC chooses along the
/// equal-variance order. Complexity: O(M^3).
Matrix equal_variance_graph(const Covariance& covariance, const EdgeConstraints& constraints);

}  // namespace nsimplex::causal

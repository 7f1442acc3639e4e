#pragma once

#include <nsimplex/causal_options.h>

#include "causal/matrix.h"
#include "causal/structure/constraints.h"

namespace nsimplex::causal {

/// Makes a graph a directed acyclic one and returns the edges this took away, the strongest first.
///
/// Edges are taken in, required ones first and then by falling |weight| (of equal ones the first in
/// row-major order), unless they close a cycle with those already in: what goes is the weakest edge
/// of every cycle. A graph without cycles stays as it is.
///
/// Complexity: O(M^2 log M) for the order and O(M^2 / 64) for every edge that makes a column
/// reachable from another.
std::vector<CausalEdge> repair_cycles(Matrix& weights, const AllowedEdges& edges);

}  // namespace nsimplex::causal

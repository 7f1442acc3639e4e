#pragma once

#include "causal/embedding/neighbours.h"

namespace nsimplex::causal {

/// The magnitudes of a graph in a form that knows neither units of its nodes nor their common size:
///
///     b_ij = |A_ij| e^(x_j - x_i - mu),   x and mu the least squares of log b_ij over all edges.
///
/// Columns in other units turn A into D^-1 A D, and a factor into c A: b is the same for all of
/// these, up to the rounding of log b to 2^-20, which takes rounding errors away from it. The edges
/// of a forest all get 1, since units could have made any weights of them; where nodes are joined
/// in several ways, the weaker way stays the weaker one. Factors beyond 1000 and below 1/1000 count
/// as these. Conjugate gradients, O(edges) a step, at most some hundreds of steps in most graphs.
SparseGraph balanced(const SparseGraph& graph);

}  // namespace nsimplex::causal

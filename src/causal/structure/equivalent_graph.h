#pragma once

#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// The part of each column's variance that all others explain: the squared multiple correlation
/// R^2, from the inverse of the covariance (of the correlations, with 1e-6 added to their
/// diagonal).
Vector explained_parts(const Matrix& covariance);

/// Of the graphs that say the same of a covariance as `parents`, one whose edges tend to point from
/// a smaller to a larger R^2. What a cause sends on accumulates along paths, so that effects are
/// explained better; unlike variances, R^2 does not depend on units.
///
/// Edges of colliders, two causes without an edge between them, keep their direction, and so do
/// those that constraints do not let turn. Of the others it is chosen from the effects' end:
/// among the columns that may be last, the one of largest R^2 is, and so on without it. A column
/// may be last if no edge must leave it and each neighbour whose edge is free is also one of all
/// its other neighbours.
///
/// Complexity: O(M^2 d^2) for d neighbours of a column.
///
/// Sources: Dor, Tarsi, "A simple algorithm to construct a consistent extension of a partially
/// oriented graph", 1992; Reisach et al., "A scale-invariant sorting criterion to find a causal
/// order in additive noise models", NeurIPS 2023.
std::vector<ParentSet> equivalent_graph(const Matrix& covariance, const AllowedEdges& edges,
                                        const GaussianCost& cost,
                                        const std::vector<ParentSet>& parents);

}  // namespace nsimplex::causal

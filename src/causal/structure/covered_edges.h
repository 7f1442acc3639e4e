#pragma once

#include "causal/structure/parent_search.h"

namespace nsimplex::causal {

/// The part of each column's variance that all others explain: the squared multiple correlation
/// R^2, from the inverse of the covariance (of the correlations, with 1e-6 added to their
/// diagonal).
Vector explained_parts(const Matrix& covariance);

/// Turns edges that may as well point the other way, those whose cause has a larger R^2 than their
/// effect. What a cause sends on accumulates along paths, so effects tend to be explained better;
/// unlike variances, R^2 does not depend on units.
///
/// An edge i -> j is covered where j has the parents of i and i: turned round, the graph says the
/// same of a covariance. One is turned after the other until no such edge is left; each turn takes
/// one edge from a larger to a smaller R^2 away, so this ends.
///
/// Sources: Chickering, "A transformational characterization of equivalent Bayesian network
/// structures", UAI 1995 (covered edges); Reisach et al., "A scale-invariant sorting criterion to
/// find a causal order in additive noise models", NeurIPS 2023 (R^2).
void turn_covered_edges(const Matrix& covariance, const AllowedEdges& edges,
                        const GaussianCost& cost, std::vector<ParentSet>& parents);

}  // namespace nsimplex::causal

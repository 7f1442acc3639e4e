#pragma once

#include "causal/structure/order_search.h"

namespace nsimplex::causal {

/// How sure each edge of a graph and each other pair of columns is, from what the search's
/// likelihood says:
///
///     score_ij = p_ij max(gain_ij, 0) + price share_ij
///
/// - gain_ij: what the edge i -> j lowers the cost by, in the graph as it is, or with the edge
///   j -> i turned round; 0 for columns without an edge between them.
/// - p_ij = 1 / (1 + exp((gain_ji - gain_ij) / 2)): which of the two directions the likelihoods
///   prefer. 1/2 for an edge that may point either way; 1 where the other direction would close a
///   cycle or is not allowed.
/// - share_ij, at most 1: the part that i has in all that single columns say about j, in terms
///   -log(1 - r^2) of the correlations r. With the price of an edge it ranks pairs without one.
///
/// Pairs that are not allowed have none. Complexity: O(M^2), and O(p^3) for an edge into a column
/// of p parents.
Matrix order_scores(const Covariance& covariance, const AllowedEdges& edges,
                    const GaussianCost& cost, const std::vector<ParentSet>& parents);

}  // namespace nsimplex::causal

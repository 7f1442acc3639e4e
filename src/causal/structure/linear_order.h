#pragma once

#include <string>
#include <vector>

#include "causal/structure/estimators.h"
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

/// Structure learning from the covariance alone, by causal orders: of two linear Gaussian models
/// the one of lower BIC.
///
/// - Noises of one variance: equal_variance_order(), the parents by grow-shrink. Its order is
///   right even where the directions of edges cannot be told from independence, but it depends on
///   the columns' units. With fewer rows than two a column, variances given all placed columns are
///   those of few degrees of freedom: selected_variance_order() is taken, and improve_order() goes
///   on from it while columns and parents are few enough.
/// - Noises of free variances, M - 1 parameters more: the order of least BIC that improve_order()
///   finds from the first model's order and, where that wins, from that of rising R^2 and from
///   random ones. Whatever the units, but orders of one equivalence class cost the same:
///   equivalent_graph() chooses among their graphs.
///
/// BIC with the prices of EdgePrices: 2 log n for an edge, more where rows are few or columns many.
/// A column has at most n / 10 parents, and at least one is possible. `weights` are the coefficients of each column's
/// regression on its parents, `scores` those of order_scores().
///
/// Complexity: O(n M^2 + M^3), and O(M^2) answers of ParentSearch a sweep of the order search.
Structure fit_order(TableView table, const CausalFitOptions& options);

/// Answers that know nothing of causes, beside which an estimator's is to be read: the empty graph,
/// and columns sorted by variance or by R^2 on all others, each regressed on those before it,
/// chosen by the grow-shrink search and the BIC of the estimator `order`. Equal numbers keep the
/// columns' order.
///
/// Source: Reisach, Seiler, Weichwald, "Beware of the simulated DAG", NeurIPS 2021 (sortnregress,
/// there with a lasso); R^2: Reisach et al., NeurIPS 2023.
///
/// The table must be whole and no column constant. Complexity: O(n M^2 + M^3) and M answers of
/// ParentSearch for each order.
struct Baseline {
  std::string name;  ///< empty, variance_sort, r2_sort
  Structure structure;
};
std::vector<Baseline> baselines(TableView table);

}  // namespace nsimplex::causal

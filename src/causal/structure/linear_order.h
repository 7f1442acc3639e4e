// Declares the estimator `order` in its linear form, and the scores of its edges.

#pragma once

#include <string>
#include <vector>

#include "causal/structure/estimators.h"
#include "causal/structure/order_search.h"

namespace nsimplex::causal {

/// How certain each edge of a graph and each other pair of columns is, by the likelihood of the
/// search:
///
///     score_ij = p_ij max(gain_ij, 0) + price share_ij
///
/// - gain_ij is the decrease of the cost by the edge i -> j, in the graph as it is or with the edge
///   j -> i reversed. It is 0 for columns without an edge between them.
/// - p_ij = 1 / (1 + exp((gain_ji - gain_ij) / 2)) is the preference of the likelihoods for this
///   direction. It is 1/2 if the edge may point either way, and 1 if the other direction would
///   close a cycle or is not allowed.
/// - share_ij, at most 1, is the share of i in the sum of -log(1 - r^2) over the correlations r of
///   single columns with j. Multiplied by the price of an edge, it ranks pairs without an edge.
///
/// Pairs that are not allowed have score 0. Complexity: O(M^2), and O(p^3) for an edge into a
/// column of p parents.
Matrix order_scores(const ParentCosts& costs, const AllowedEdges& edges,
                    const std::vector<ParentSet>& parents);

/// Structure learning from the covariance alone, by causal orders. It fits two linear Gaussian
/// models and returns the one of lower BIC.
///
/// - Noises of one variance: equal_variance_order(), with parents by grow-shrink. Its order is
///   right even if independence cannot determine the directions of edges, but it depends on the
///   columns' units. With fewer than two rows per column, variances given all placed columns have
///   few degrees of freedom. Then selected_variance_order() is used, and improve_order() continues
///   from it if there are few enough columns and parents.
/// - One noise variance per column, M - 1 parameters more: the order of lowest BIC that
///   improve_order() finds from the first model's order. If this model wins, it also starts from
///   the order of rising R^2 and from random orders. The result does not depend on units, but
///   orders of one equivalence class have equal costs; equivalent_graph() chooses among their
///   graphs.
///
/// BIC uses the prices of EdgePrices: 2 log n per edge, or more with few rows or many columns. A
/// column has at most n / 10 parents, and one is always possible. `weights` are the coefficients of
/// each column's regression on its parents, and `scores` those of order_scores().
///
/// Complexity: O(n M^2 + M^3), and O(M^2) per sweep of the order search, with an answer of
/// ParentSearch for each column that looks at the place of the one that moves.
Structure fit_order(TableView table, const CausalFitOptions& options);

/// Baselines that use no causal information, for comparison with an estimator: the empty graph, and
/// columns sorted by variance or by R^2 on all others. Each sorted column is regressed on those
/// before it, with parents by the grow-shrink search and the BIC of the estimator `order`. Equal
/// numbers keep the columns' order.
///
/// Source: Reisach, Seiler, Weichwald, "Beware of the simulated DAG", NeurIPS 2021 (sortnregress,
/// there with a lasso); R^2: Reisach et al., NeurIPS 2023.
///
/// The table must have no missing value and no constant column. Complexity: O(n M^2 + M^3) and M
/// answers of ParentSearch per order.
struct Baseline {
  std::string name;  ///< empty, variance_sort, r2_sort
  Structure structure;
};
std::vector<Baseline> baselines(TableView table);

}  // namespace nsimplex::causal

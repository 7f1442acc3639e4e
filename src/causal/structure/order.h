#pragma once

#include "causal/structure/structure.h"

namespace nsimplex::causal {

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

}  // namespace nsimplex::causal

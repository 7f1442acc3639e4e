#pragma once

#include <functional>

#include "causal/structure/parent_search.h"
#include "causal/structure/precedence.h"

namespace nsimplex::causal {

/// A causal order with the parents that a search found for each column among those before it.
struct OrderedGraph {
  Order order;
  std::vector<ParentSet> parents;  ///< of each column
  double cost;                     ///< their sum
};

/// Whether one cost is less than another by more than rounding: orders of one equivalence class
/// then have one cost on every machine.
bool is_less(double cost, double other);

/// Complexity: one answer of the search a column.
OrderedGraph graph_of_order(ParentSearch& search, const Order& order);

/// The order of equal noise variances where rows are too few for a variance given all placed
/// columns, as equal_variance_order() takes it: the next column is the one of least variance given
/// the parents that the search finds among the placed ones. `checkpoint` is called between columns.
///
/// Complexity: O(M^2) answers of the search.
Order selected_variance_order(ParentSearch& search, const Precedence& precedence,
                              const std::function<void()>& checkpoint);

/// Moves one column after the other to where the whole order costs least, sweep by sweep, until no
/// move lowers the cost. Columns stay where `precedence` lets them. `checkpoint` is called between
/// the columns.
///
/// Complexity: O(M^2) answers of the search a sweep.
OrderedGraph improve_order(ParentSearch& search, const Precedence& precedence, Order order,
                           const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal

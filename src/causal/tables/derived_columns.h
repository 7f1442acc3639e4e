// Declares the search for columns that other columns of a table determine.

#pragma once

#include <string>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// column = constant + sum_k weights_k from_k, up to rounding: 1e-5 of its variance.
struct DerivedColumn {
  int64_t column;
  std::vector<int64_t> from;  ///< ascending
  std::vector<double> weights;
  double constant;
};

/// Columns of a table [n, M] that are a sum of others, such as totals, differences, the last of a
/// group of indicators and one column in two units. Of the columns of a relation it is the one that correlates most with the others, and the
/// last of several such. Every relation is named once, and no column of a result determines another
/// one. NaN counts as the mean of its column. A table of more than 1,000 columns has none, and so has
/// one with fewer than two rows per column, in which chance determines columns.
///
/// Complexity: O(n M^2 + M^3) for the covariance, and O(M^3) more for each relation.
std::vector<DerivedColumn> derived_columns(TableView table);

/// The relation in one line: "total = a + 2 b - 1".
std::string relation_text(const DerivedColumn& found, const std::vector<std::string>& names);

}  // namespace nsimplex::causal

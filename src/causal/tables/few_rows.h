// Declares the warning of tables with too few rows.

#pragma once

#include <string>
#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// A warning that a graph learned from a table has edges that mean little, because the table has two
/// rows, fewer rows than columns, or a column with few values beside its gaps (NaN). Empty if it
/// has enough. `names` are the columns as the warning shows them; without names it has numbers.
std::string few_rows_warning(TableView table, const std::vector<std::string>& names = {});

}  // namespace nsimplex::causal

// Declares the kinds of columns that the values of a table suggest.

#pragma once

#include <nsimplex/causal_options.h>

#include <vector>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The kind of each column of a table without gaps: binary for two values; category for 0, 1, .., k -
/// 1 with k from 3 to 5, unless the last is rarer than 1 / (4 k), as in counts; count for other whole
/// numbers from 0 of at most 30 different values; otherwise continuous. Each value of a binary column
/// or a category occurs at least five times. Empty if all are continuous or the table has fewer than
/// 50 rows.
std::vector<ColumnKind> kinds_of_values(TableView table);

}  // namespace nsimplex::causal

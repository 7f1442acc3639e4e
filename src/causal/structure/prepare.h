#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The table that estimators see: its columns less their means and, with `standardise`, divided by
/// their standard deviations (of n). Throws InputError where there are fewer than two rows or
/// columns, a number is not finite, or a column is constant.
Matrix prepared_table(TableView table, bool standardise);

}  // namespace nsimplex::causal

// Declares the preparation of a table for the estimators.

#pragma once

#include <string>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The table on which estimators work: columns minus their means and, with `standardise`, divided
/// by their standard deviations (of n). If the square of a deviation could leave the range of
/// double, all columns are divided by one power of two, which changes no weight. The largest
/// deviation is then about 1.
///
/// Throws InputError if there are fewer than two rows or columns, a number is not finite, a column
/// is constant, or columns that are not standardised differ in scale by more than 2^400.
Matrix prepared_table(TableView table, bool standardise);

/// Throws InputError if the range of the widest column of a raw table lies outside 1e-30 .. 1e30.
/// It is for estimators whose l1 norm has the table's units.
void require_moderate_scale(TableView table, const std::string& estimator);

}  // namespace nsimplex::causal

#pragma once

#include <string>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The table that estimators see: its columns less their means and, with `standardise`, divided by
/// their standard deviations (of n). Where a deviation is so large or so small that its square could
/// leave the range of double, all columns are divided by one power of two, which changes no weight:
/// the largest deviation then lies near 1.
///
/// Throws InputError where there are fewer than two rows or columns, a number is not finite, a
/// column is constant, or columns that are not standardised differ in scale by more than 2^400.
Matrix prepared_table(TableView table, bool standardise);

/// Throws InputError where the range of the widest column of a raw table lies outside 1e-30 .. 1e30:
/// for estimators whose l1 norm has the table's units.
void require_moderate_scale(TableView table, const std::string& estimator);

}  // namespace nsimplex::causal

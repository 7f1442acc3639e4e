// Declares the checks of what a call gives beside a table.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "causal/matrix.h"

// Checks of what a call gives beside a table [n, M]: each throws InputError "ARGUMENT: expected ..,
// got ..". Code that looks something up by rows or columns calls them first.

namespace nsimplex::causal {

/// Whether a table may have missing values (NaN).
enum class Gaps { refused, kept };

/// One value per row of a table of `rows` rows.
void require_one_per_row(std::string_view argument, size_t given, int64_t rows);

/// One value per column of a table of `columns` columns.
void require_one_per_column(std::string_view argument, size_t given, int64_t columns);

/// The columns of a list that belongs to a row.
void require_targets(const std::vector<std::vector<int64_t>>& targets, int64_t rows,
                     int64_t columns);

/// Numbers that are neither infinite nor, if gaps are refused, NaN. `argument` may have the name of
/// the function in front.
void require_finite(std::string_view argument, TableView values, Gaps gaps = Gaps::refused);

}  // namespace nsimplex::causal

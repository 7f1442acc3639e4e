// Checks what a call gives beside a table against the table's rows and columns.

#include "causal/tables/table_arguments.h"

#include <cmath>
#include <sstream>

#include "causal/tables/column_error.h"
#include "support/require.h"

namespace nsimplex::causal {

void require_one_per_row(std::string_view argument, size_t given, int64_t rows) {
  require(static_cast<int64_t>(given) == rows, argument, ": expected ", rows, ", one per row, got ",
          given);
}

void require_one_per_column(std::string_view argument, size_t given, int64_t columns) {
  require(static_cast<int64_t>(given) == columns, argument, ": expected ", columns,
          ", one per column, got ", given);
}

void require_targets(const std::vector<std::vector<int64_t>>& targets, int64_t rows,
                     int64_t columns) {
  require_one_per_row("targets", targets.size(), rows);
  for (size_t row = 0; row < targets.size(); ++row) {
    for (const int64_t column : targets[row]) {
      require(column >= 0 && column < columns, "targets: expected columns 0 to ", columns - 1,
              ", got ", column, " in row ", row);
    }
  }
}

void require_finite(std::string_view argument, TableView values, Gaps gaps) {
  for (int64_t row = 0; row < values.rows(); ++row) {
    for (int64_t column = 0; column < values.cols(); ++column) {
      const double value = values(row, column);
      if (std::isfinite(value) || (gaps == Gaps::kept && std::isnan(value))) continue;
      std::ostringstream text;  // the sign of NaN says nothing
      text << argument << ": expected finite numbers, got " << (std::isnan(value) ? NAN : value)
           << " in row " << row << ", column {}";
      throw ColumnError(text.str(), {column});
    }
  }
}

}  // namespace nsimplex::causal

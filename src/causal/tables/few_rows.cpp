// Warns of tables whose rows or values are too few for a causal graph.

#include "causal/tables/few_rows.h"

#include <cstdint>

namespace nsimplex::causal {
namespace {

// Values per column of the table that the likelihood of a table with gaps needs in every column.
constexpr int64_t kValuesPerColumn = 6;

}  // namespace

std::string few_rows_warning(TableView table, const std::vector<std::string>& names) {
  const int64_t rows = table.rows(), columns = table.cols();
  const std::string of_columns = std::to_string(columns).append(" columns: ");
  if (rows == 2) return "2 rows lie on a line, so edges from them mean nothing";
  if (rows < columns) {
    return std::to_string(rows)
        .append(" rows for ")
        .append(of_columns)
        .append("only strong effects can be found");
  }
  if (columns == 0) return "";
  const Eigen::Array<Eigen::Index, 1, Eigen::Dynamic> gaps =
      table.array().isNaN().colwise().count().cast<Eigen::Index>();
  Eigen::Index column = 0;
  const Eigen::Index most = gaps.maxCoeff(&column), least = rows - most;
  const int64_t enough = kValuesPerColumn * columns;
  // The fit refuses a column with fewer than two values.
  if (most == 0 || least < 2 || least >= enough) return "";
  const std::string name =
      names.empty() ? std::to_string(column) : names[static_cast<size_t>(column)];
  return std::string("column ")
      .append(name)
      .append(" has ")
      .append(std::to_string(least))
      .append(" values for ")
      .append(of_columns)
      .append("with fewer than ")
      .append(std::to_string(enough))
      .append(", its edges may be found by chance");
}

}  // namespace nsimplex::causal

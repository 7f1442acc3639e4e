// Declares a table from which a causal graph can be learned.

#pragma once

#include <nsimplex/causal_options.h>

#include <string>
#include <vector>

#include "causal/matrix.h"
#include "io/table.h"

namespace nsimplex::causal {

struct UsableRules {
  MissingValues missing = MissingValues::refuse;
  /// Leaves out constant columns and copies instead of refusing them, and derived_columns().
  bool drop = false;
};

/// A table from which a causal graph can be learned. It has at least two rows and two columns and no
/// missing value (but with MissingValues::likelihood). No column is constant, and no two columns are
/// equal.
struct UsableTable {
  std::vector<std::string> names;    ///< of the columns; empty if the table has none
  Matrix values;                     ///< [rows, columns]
  std::vector<int64_t> columns;      ///< the numbers of the columns in the table that was given
  std::vector<int64_t> rows;         ///< the numbers of the rows in the table that was given
  std::vector<std::string> dropped;  ///< columns left out, with the reason: "c: equals a"
  int64_t dropped_rows = 0;
  int64_t filled = 0;  ///< number of missing values that were replaced by a mean
};

/// Keeps some columns of a table. `places` are their places among its columns, ascending.
void keep_columns(UsableTable& table, const std::vector<int64_t>& places);

/// Names for columns without names: x0, x1, ..
std::vector<std::string> column_names(int64_t count);

/// Whether numbers differ by no more than rounding: their deviation is at most 10^-12 of the
/// largest of them. The answer does not depend on their scale.
bool is_constant(const Eigen::Ref<const Eigen::VectorXd, 0, Eigen::InnerStride<>>& values);

/// Checks a table [rows, columns], with NaN for a missing value. `names` may be empty. Throws
/// InputError "cannot use SOURCE: WHY", which names the column and the row, counted from 1 below the
/// names.
UsableTable usable_table(const Matrix& table, std::vector<std::string> names,
                         const UsableRules& rules, const std::string& source);

/// The same for a table that was read from a file.
UsableTable usable_table(const io::Table& table, const UsableRules& rules,
                         const std::string& source);

}  // namespace nsimplex::causal

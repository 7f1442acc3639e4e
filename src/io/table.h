#pragma once

#include <string>
#include <vector>

#include "io/source.h"

namespace nsimplex::io {

/// Numbers in rows and named columns.
struct Table {
  std::vector<std::string> columns;  ///< their names; empty where there are none
  std::vector<std::string> labels;   ///< names of the rows; empty where there are none
  int64_t rows = 0, width = 0;
  std::vector<double> values;  ///< [rows, width]; NaN where missing
  int64_t missing = 0;         ///< how many values are

  double at(int64_t row, int64_t column) const { return values[row * width + column]; }
};

/// Whether the first line of a text has the names of the columns. `detect`: it has where one of its
/// cells is neither a number nor missing. A header of numbers has to be asked for.
enum class HeaderLine { detect, present, absent };

struct TableOptions {
  HeaderLine header = HeaderLine::detect;  ///< of text only
  bool allow_missing = true;
  std::string key;  ///< of npz: the array; "" where it has but one of two dimensions
};

/// A table from npy, npz, csv or tsv; which of them it is, the bytes say. Arrays have one or two
/// dimensions (one: a single column). In text the first column holds labels where its name is
/// empty, or where the header has one cell less than every row.
///
/// Fails, with line and column, for a cell that is no finite number and not missing (is_missing()),
/// rows of different width, and tables without a row or column.
Table parse_table(const Source& source, const TableOptions& options = {});

/// parse_table() of a file.
Table read_table(const std::string& path, const TableOptions& options = {});

}  // namespace nsimplex::io

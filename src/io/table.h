#pragma once

#include <string>
#include <vector>

#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::io {

/// Numbers in rows and named columns.
struct Table {
  std::vector<std::string> columns;  ///< their names; empty where there are none
  std::vector<std::string> labels;   ///< names of the rows; empty where there are none
  int64_t rows = 0, width = 0;
  std::vector<double> values;  ///< [rows, width]; NaN where missing
  int64_t missing = 0;         ///< how many values are
  TextReading reading;         ///< what was decided to read a text

  double at(int64_t row, int64_t column) const { return values[row * width + column]; }
};

struct TableOptions {
  TextOptions text = {};  ///< of text only
  bool allow_missing = true;
  std::string key;  ///< of npz: the array; "" where it has but one of two dimensions
};

/// A table from npy, npz or a text of rows and columns; which of them it is, the bytes say. Arrays
/// have one or two dimensions (one: a single column). A text is read as TextGrid says.
///
/// Fails, with line and column, for a cell that is no finite number and not missing (is_missing()
/// or one of the options' words), rows of different width, and tables without a row or column.
Table parse_table(const Source& source, const TableOptions& options = {});

/// The number in a cell of a text; NaN where it is missing and may be. Fails for everything else.
double number_at(const TextGrid& grid, int64_t row, int64_t column, const TableOptions& options);

/// parse_table() of a file.
Table read_table(const std::string& path, const TableOptions& options = {});

}  // namespace nsimplex::io

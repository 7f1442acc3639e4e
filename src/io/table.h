// Declares tables of numbers with names of rows and columns, and how they are read.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/input_file.h"
#include "io/text_grid.h"

namespace nsimplex::io {

/// Numbers in rows and named columns.
struct Table {
  std::vector<std::string> columns;  ///< names of the columns; empty if there are none
  std::vector<std::string> labels;   ///< names of the rows; empty if there are none
  int64_t rows = 0, width = 0;
  std::vector<double> values;  ///< [rows, width]; NaN where missing or a word
  int64_t missing = 0;         ///< number of missing values
  TextReading reading;         ///< decisions made while reading a text
  /// The cells of the columns of TableOptions::texts, by number of the column; empty where missing.
  std::map<int64_t, std::vector<std::string>> texts;

  double at(int64_t row, int64_t column) const { return values[row * width + column]; }
};

struct TableOptions {
  TextOptions text = {};  ///< only for texts
  bool allow_missing = true;
  std::string key;  ///< the array of an npz; "" if it has only one with two dimensions
  /// Says of each of `width` columns whether it may hold words, and is also returned as texts. It
  /// gets the names of the columns, which are none for an array. Empty: no column.
  std::function<std::vector<bool>(const std::vector<std::string>& names, int64_t width)> texts = {};
};

/// Parses a table from npy, npz or a text of rows and columns; the bytes determine which of them it
/// is. Either may be packed by gzip. Arrays have one or two dimensions (one: a single column). A text is read by the rules of
/// TextGrid.
///
/// Cells are finite numbers or missing (by is_missing() or the options' words). A column of a text
/// whose values are all words for true and false, as pandas writes them, has the numbers 1 and 0.
/// Fails, with line and column, for every other cell, for rows of different width, and for tables
/// without a row or column.
Table parse_table(const Source& source, const TableOptions& options = {});

/// The number in a cell of a text; NaN if it is missing and this is allowed. Fails for everything
/// else.
double number_at(const TextGrid& grid, int64_t row, int64_t column, const TableOptions& options);

/// parse_table() of a file.
Table read_table(const std::string& path, const TableOptions& options = {});

}  // namespace nsimplex::io

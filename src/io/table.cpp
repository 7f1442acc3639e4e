// Reads tables of numbers, words and truth values from texts and arrays.

#include "io/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "io/gzip.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/text.h"

namespace nsimplex::io {
namespace {

bool is_gap(std::string_view cell, const TableOptions& options) {
  return is_missing(cell) ||
         std::ranges::find(options.text.missing_words, cell) != options.text.missing_words.end();
}

// Whether a column has values, and all of them are words for true and false.
bool is_boolean(const TextGrid& grid, int64_t column, const TableOptions& options) {
  bool any = false;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    const std::string_view cell = grid.at(row, column);
    if (is_gap(cell, options)) continue;
    if (!parse_truth(cell)) return false;
    any = true;
  }
  return any;
}

// Creates the texts of the columns that have them.
void add_texts(Table& table, const TableOptions& options) {
  if (!options.texts) return;
  const std::vector<bool> chosen = options.texts(table.columns, table.width);
  for (int64_t column = 0; column < table.width; ++column) {
    if (chosen[static_cast<size_t>(column)]) table.texts[column];
  }
}

std::string text_of(double number) {
  if (std::isnan(number)) return "";
  std::array<char, 32> buffer;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr};
}

Table table_of(const TextGrid& grid, const TableOptions& options) {
  Table table;
  table.columns = grid.names();
  table.labels = grid.labels();
  table.rows = grid.rows();
  table.width = grid.width();
  table.reading = grid.reading();
  add_texts(table, options);
  std::vector<bool> boolean;
  boolean.reserve(static_cast<size_t>(table.width));
  for (int64_t column = 0; column < table.width; ++column) {
    boolean.push_back(!table.texts.contains(column) && is_boolean(grid, column, options));
  }
  table.values.reserve(table.rows * table.width);
  for (int64_t row = 0; row < table.rows; ++row) {
    for (int64_t column = 0; column < table.width; ++column) {
      double number = std::numeric_limits<double>::quiet_NaN();
      const std::string_view cell = grid.at(row, column);
      const auto texts = table.texts.find(column);
      if (boolean[static_cast<size_t>(column)] && !is_gap(cell, options)) {
        number = parse_truth(cell).value_or(false) ? 1 : 0;
      } else if (texts == table.texts.end()) {
        number = number_at(grid, row, column, options);
        table.missing += std::isnan(number);
      } else {
        const bool gap = is_gap(cell, options);
        texts->second.emplace_back(gap ? "" : cell);
        table.missing += gap;
        number = parse_number(cell, options.text.numbers).value_or(number);
      }
      table.values.push_back(number);
    }
  }
  return table;
}

Table table_of(const Array& array, const TableOptions& options) {
  const size_t dims = array.shape.size();
  if (dims < 1 || dims > 2) {
    array.fail("expected a table of two dimensions, got shape " + array.shape_text());
  }
  Table table;
  table.rows = array.shape[0];
  table.width = dims == 2 ? array.shape[1] : 1;
  if (table.rows == 0) array.fail("a table without rows");
  if (table.width == 0) array.fail("a table without columns");
  table.values = array.doubles();
  for (size_t i = 0; i < table.values.size(); ++i) {
    const bool missing = std::isnan(table.values[i]);
    table.missing += missing;
    if (std::isinf(table.values[i]) || (missing && !options.allow_missing)) {
      array.fail("row " + std::to_string(i / table.width + 1) + ", column x" +
                 std::to_string(i % table.width) + ": expected a number, got " +
                 (missing ? "a missing value" : "infinity"));
    }
  }
  add_texts(table, options);
  for (auto& [column, texts] : table.texts) {
    for (int64_t row = 0; row < table.rows; ++row) texts.push_back(text_of(table.at(row, column)));
  }
  return table;
}

// Advice for a cell that is not a number.
std::string advice(const TextGrid& grid, int64_t row, std::string_view cell) {
  if (is_too_large(cell)) return ", which is too large: a double holds up to 1.8e308";
  if (row == 0 && !grid.reading().header) return " (--header yes takes the first row as names)";
  if (parse_number(cell)) return " (decimals are written with a comma, as --decimal says)";
  if (parse_number(cell, {.decimal = ','})) {
    return " (decimals are written with a point; a command has --decimal)";
  }
  if (parse_number(cell, {.thousands = ','})) {
    return " (digits are written without marks of groups; a command has --thousands)";
  }
  return "";
}

}  // namespace

double number_at(const TextGrid& grid, int64_t row, int64_t column, const TableOptions& options) {
  const std::string_view cell = grid.at(row, column);
  if (const auto number = parse_number(cell, options.text.numbers)) return *number;
  if (!is_gap(cell, options)) {
    grid.fail_at(row, column,
                 "expected a number, got " + quoted_name(cell) + advice(grid, row, cell));
  }
  if (!options.allow_missing) grid.fail_at(row, column, "expected a number, got a missing value");
  return std::numeric_limits<double>::quiet_NaN();
}

Table parse_table(const Source& source, const TableOptions& options) {
  if (source.starts_with(kNpyMagic)) return table_of(parse_npy(source), options);
  if (source.starts_with(kZipMagic)) {
    const Npz file(source);
    const Array array = options.key.empty() ? file.read_matrix() : file.read(options.key);
    return table_of(array, options);
  }
  if (source.starts_with("\x89HDF")) {
    source.fail("HDF5: python -m nsimplex.causal.cells turns an h5ad file into a table");
  }
  if (is_gzip(source)) {
    const std::vector<uint8_t> bytes = gunzipped(source);
    return parse_table({source.name, bytes}, options);
  }
  return table_of(TextGrid(source, options.text), options);
}

Table read_table(const std::string& path, const TableOptions& options) {
  const FileBytes file(path);
  return parse_table({path, file.bytes()}, options);
}

}  // namespace nsimplex::io

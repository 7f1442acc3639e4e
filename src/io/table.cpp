#include "io/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/cells.h"
#include "io/mapped_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/numbers.h"

namespace nsimplex::io {
namespace {

// What is no text, and would give a baffling message about its first line.
void refuse_binary(const Source& source) {
  if (source.starts_with("\x1f\x8b")) source.fail("compressed with gzip: unpack it first");
  const std::string_view start = source.text().substr(0, 1024);
  if (start.find('\0') != std::string_view::npos) {
    source.fail("neither npy, npz nor text");
  }
}

class TextTable {
 public:
  TextTable(const Source& source, const TableOptions& options)
      : source_(source), options_(options), cells_(source) {}

  Table read() {
    if (cells_.rows() == 0) source_.fail("a table without rows");
    const bool header = has_header();
    first_ = header ? 1 : 0;
    if (first_ == cells_.rows()) source_.fail("a table without rows");
    const auto width = static_cast<int64_t>(cells_.row(first_).size());
    const bool labelled = header && set_names(width);
    table_.width = width - labelled;
    if (table_.width == 0) source_.fail("a table without columns");
    for (int64_t row = first_; row < cells_.rows(); ++row) add_row(row, width, labelled);
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail_at(int64_t row, const std::string& why) const {
    source_.fail("line " + std::to_string(cells_.line(row)) + why);
  }

  bool has_header() const {
    if (options_.header != HeaderLine::detect) return options_.header == HeaderLine::present;
    const auto names = cells_.row(0);
    return std::any_of(names.begin(), names.end(), [](std::string_view cell) {
      return !is_missing(cell) && !parse_number(cell);
    });
  }

  // Takes the names from the first line; whether the first column holds labels.
  bool set_names(int64_t width) {
    const auto names = cells_.row(0);
    const bool shorter = static_cast<int64_t>(names.size()) + 1 == width;
    const bool labelled = shorter || (names.size() > 1 && names[0].empty());
    if (!shorter && static_cast<int64_t>(names.size()) != width) {
      fail_at(first_, ": expected " + std::to_string(names.size()) + " cells as in line " +
                          std::to_string(cells_.line(0)) + ", got " + std::to_string(width));
    }
    table_.columns.assign(names.begin() + (labelled && !shorter), names.end());
    return labelled;
  }

  void add_row(int64_t row, int64_t width, bool labelled) {
    auto cells = cells_.row(row);
    if (static_cast<int64_t>(cells.size()) != width) {
      fail_at(row, ": expected " + std::to_string(width) + " cells as in line " +
                       std::to_string(cells_.line(first_)) + ", got " +
                       std::to_string(cells.size()));
    }
    if (labelled) {
      table_.labels.emplace_back(cells[0]);
      cells = cells.subspan(1);
    }
    for (size_t column = 0; column < cells.size(); ++column) {
      const auto number = parse_number(cells[column]);
      const bool missing = !number && is_missing(cells[column]);
      if (!number && !(missing && options_.allow_missing)) {
        const bool row_name =
            row == first_ && first_ == 1 && column == 0 && width > 1 && !labelled && !missing;
        fail_at(row, ", column " + name_of(column) + ": expected a number, got " +
                         (missing ? "a missing value" : quoted(cells[column])) +
                         (row_name ? " (a column of row names has no name in the header)" : ""));
      }
      table_.values.push_back(number.value_or(std::numeric_limits<double>::quiet_NaN()));
      table_.missing += missing;
    }
    ++table_.rows;
  }

  std::string name_of(size_t column) const {
    return table_.columns.empty() ? std::to_string(column + 1) : table_.columns[column];
  }

  const Source& source_;
  const TableOptions& options_;
  const Cells cells_;
  int64_t first_ = 0;
  Table table_;
};

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
      array.fail("row " + std::to_string(i / table.width) + ", column " +
                 std::to_string(i % table.width) + ": expected a number, got " +
                 (missing ? "a missing value" : "infinity"));
    }
  }
  return table;
}

}  // namespace

Table parse_table(const Source& source, const TableOptions& options) {
  if (source.starts_with(kNpyMagic)) return table_of(parse_npy(source), options);
  if (source.starts_with(kZipMagic)) {
    const Npz file(source);
    const Array array = options.key.empty() ? file.read_matrix() : file.read(options.key);
    return table_of(array, options);
  }
  refuse_binary(source);
  return TextTable(source, options).read();
}

Table read_table(const std::string& path, const TableOptions& options) {
  const MappedFile file(path);
  return parse_table({path, file.bytes()}, options);
}

}  // namespace nsimplex::io

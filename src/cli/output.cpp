#include "cli/output.h"

#include <algorithm>
#include <cstdio>

#include "support/printable.h"

namespace nsimplex::cli {

void print(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) throw OutputClosed();
}

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  for (std::string& cell : row) cell = printable(cell);  // names come from files, too
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - row[column].size(), ' ');
      const bool last = column + 1 == row.size();
      if (column == 0) {
        text += last ? row[column] : row[column] + padding;
      } else {
        text += "  " + padding + row[column];
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace nsimplex::cli

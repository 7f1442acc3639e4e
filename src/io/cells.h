#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/source.h"

namespace nsimplex::io {

/// The cells of a text table, csv or tsv (RFC 4180): lines of cells between separators, a cell in
/// double quotes may hold separators, line ends and doubled quotes. Blank lines, spaces around
/// cells and a byte order mark do not count; lines end with LF or CR LF. The bytes of the source
/// must live as long as this.
class Cells {
 public:
  /// `separator` 0: a tab where the first line has one, else a comma, else a semicolon.
  explicit Cells(const Source& source, char separator = 0);
  Cells(const Cells&) = delete;  // cells may be views of this object's own strings
  Cells& operator=(const Cells&) = delete;

  int64_t rows() const { return static_cast<int64_t>(lines_.size()); }
  std::span<const std::string_view> row(int64_t row) const {
    return std::span(cells_).subspan(begin_[row], begin_[row + 1] - begin_[row]);
  }
  /// The number of a row's first line in the file, from 1.
  int64_t line(int64_t row) const { return lines_[row]; }

 private:
  std::string_view read_cell();
  std::string_view read_quoted();
  void end_row(int64_t line);
  [[noreturn]] void fail_here(const std::string& why) const;
  bool at_line_end() const;

  const Source& source_;
  std::string_view rest_;
  char separator_;
  int64_t line_ = 1;
  std::vector<std::string_view> cells_;
  std::vector<size_t> begin_ = {0};
  std::vector<int64_t> lines_;
  std::deque<std::string> unescaped_;
};

}  // namespace nsimplex::io

// Declares the cells of a text table, and the options for its delimiter, quotes and comments.

#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.h"
#include "io/text.h"

namespace nsimplex::io {

/// The separator of cells in a line. `detect`: see Cells. `space`: runs of blanks and tabs.
enum class Delimiter { detect, comma, tab, semicolon, pipe, space };

struct CellsOptions {
  Delimiter delimiter = Delimiter::detect;
  /// Whether blanks are delimiters if there is no other delimiter. Set it to false if cells hold
  /// phrases.
  bool detect_blanks = true;
  /// Whether commas and semicolons also end words between blanks.
  bool loose = false;
  /// A line that begins with one of these characters is a comment, ..
  std::string_view comments;
  Encoding encoding = Encoding::detect;
  bool decimal_comma = false;     ///< commas are no delimiters unless `delimiter` says so
  bool comments_anywhere = true;  ///< .. or only before the first row
};

/// The cells of a text table (RFC 4180): lines of cells between delimiters. A cell in double quotes
/// may hold delimiters, line ends and doubled quotes. Blank lines and blanks around cells are
/// ignored. Lines end with LF, CR LF or CR. A first line "sep=;", as Excel writes it, names the
/// delimiter.
///
/// The delimiter is the first of tab, comma, semicolon and bar that occurs as often in the second
/// line as in the first, or once more (if the header has no name for the column of row names).
/// Otherwise it is blanks if both lines have the same number of words, otherwise the first one that
/// occurs, otherwise the comma.
///
/// The time is proportional to the bytes. The bytes of the source must outlive this object.
class Cells {
 public:
  explicit Cells(const Source& source, const CellsOptions& options = {});
  Cells(const Cells&) = delete;  // cells may be views of this object's own strings
  Cells& operator=(const Cells&) = delete;

  int64_t rows() const { return static_cast<int64_t>(lines_.size()); }
  std::span<const std::string_view> row(int64_t row) const {
    return std::span(cells_).subspan(begin_[row], begin_[row + 1] - begin_[row]);
  }
  /// Whether a cell is in quotes.
  bool is_quoted(int64_t row, size_t column) const { return quoted_[begin_[row] + column]; }
  /// The number of a row's first line in the file, from 1.
  int64_t line(int64_t row) const { return lines_[row]; }

  Delimiter delimiter() const { return delimiter_; }
  int64_t comments() const { return comments_; }
  /// The comment on the line right above the first row, without the character that begins it. It is
  /// empty if there is none.
  std::string_view comment_above() const { return comment_above_; }

 private:
  void read_row();
  void read_cell();
  void read_quoted();
  bool ends_cell(char c) const;
  bool skip_comment();
  void skip_blanks();
  void take_separator_line();
  [[noreturn]] void fail_here(const std::string& why) const;

  const Source source_;
  const CellsOptions options_;
  const Text text_;
  std::string_view rest_;
  Delimiter delimiter_ = Delimiter::comma;
  char separator_ = ',';  // ' ' for blanks
  int64_t line_ = 1, comments_ = 0;
  std::string_view comment_above_;
  std::vector<std::string_view> cells_;
  std::vector<bool> quoted_;
  std::vector<size_t> begin_ = {0};
  std::vector<int64_t> lines_;
  std::deque<std::string> unescaped_;
};

/// The words of a comment, as the cells of a line between `delimiter`.
std::vector<std::string_view> words_of_comment(std::string_view comment, Delimiter delimiter);

}  // namespace nsimplex::io

// Declares how a text of rows and columns is read, and the record of what was decided.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/cells.h"
#include "support/names.h"

namespace nsimplex::io {

/// The decisions that a reader made about a text. They are always reported.
struct TextReading {
  /// One decision, and the option that reverses it: `option` "header" and `value` false means
  /// --header no on the command line and header=False in Python.
  struct Decision {
    std::string what, option = {};
    bool value = false;
    std::string otherwise = {};  ///< the effect of the option: "to read it as data"
    bool guessed = false;        ///< based on the values alone, so it may be wrong
  };
  bool text = false;  ///< false: an array, nothing was decided
  bool header = false, index = false;
  Delimiter delimiter = Delimiter::detect;
  std::vector<Decision> decisions;
};

/// "first row taken as names (--header no to read it as data); ..": all decisions as text for the
/// command line, or the guessed ones as text for Python. "" if there are none.
std::string command_line_notice(const TextReading& reading);
std::string python_notice(const TextReading& reading);

/// Whether the first line of a text has the names of the columns, or its first column those of the
/// rows. `detect`: the rules of TextGrid decide.
enum class HeaderLine { detect, present, absent };
enum class IndexColumn { detect, present, absent };

/// How to read a text of rows and columns; the same for every kind of file.
struct TextOptions {
  HeaderLine header = HeaderLine::detect;
  IndexColumn index = IndexColumn::detect;
  Delimiter delimiter = Delimiter::detect;
  /// A line that begins with this character is a comment. Absent: "#" above the first row.
  std::optional<std::string> comment;
  NumberFormat numbers = {};
  Encoding encoding = Encoding::detect;
  std::vector<std::string> missing_words;  ///< besides is_missing()
  std::vector<std::string> use;            ///< names of the columns to read; empty: all
  std::vector<std::string> leave_out;      ///< names of the columns to skip
};

/// A text as rows and columns of cells, with the names of both, if it has them.
///
/// The first row has names in these cases (the first that applies decides)
///   - it has one cell less than every row below, or cells in quotes above cells without;
///   - its first cell is empty and the others are different words or whole numbers;
///   - one of its cells is a name: not a number, not one of the words for missing, infinite, true
///     and false, and it does not begin like a number. This does not apply if the others are
///     numbers with fractions, or if only the first cell is a name and the whole first column are
///     names;
///   - `numeric_names` are allowed and it has three or more consecutive whole numbers, or two or
///     more different ones above columns that all hold fractions.
/// The first column has row names if the header has no name for it, or if its cells are different
/// names. A last column that is empty in every row is left out.
///
/// Fails for rows of different width, with the line, and for a text without rows or columns. The
/// time is proportional to the bytes.
class TextGrid {
 public:
  /// What differs between kinds of files.
  struct Rules {
    bool numeric_names = true;  ///< whole numbers may be names of columns
    bool named_rows = true;     ///< a first column of different names has row names
    CellsOptions cells = {.comments = "#", .comments_anywhere = false};
    /// Decides for this kind of file whether the first row has names. Null: the rules above.
    bool (*is_header)(const Cells& cells) = nullptr;
    const char* nothing = "a table without rows";  ///< message for a text without rows
  };
  TextGrid(const Source& source, const TextOptions& options, const Rules& rules);
  TextGrid(const Source& source, const TextOptions& options) : TextGrid(source, options, Rules{}) {}

  int64_t rows() const { return cells_.rows() - first_row_; }
  int64_t width() const { return static_cast<int64_t>(columns_.size()); }
  const std::vector<std::string>& names() const { return names_; }  ///< empty if there are none
  std::vector<std::string> labels() const;  ///< of the rows; empty if there are none

  std::string_view at(int64_t row, int64_t column) const {
    return cells_.row(first_row_ + row)[columns_[column]];
  }
  bool is_quoted(int64_t row, int64_t column) const {
    return cells_.is_quoted(first_row_ + row, columns_[column]);
  }
  int64_t line(int64_t row) const { return cells_.line(first_row_ + row); }
  /// The name of a column in messages: its own, or x0, x1, .. by its number.
  std::string column_name(int64_t column) const;
  const TextReading& reading() const { return reading_; }

  /// Throws InputError "cannot read NAME: line L, column C: WHY".
  [[noreturn]] void fail_at(int64_t row, int64_t column, const std::string& why) const;

 private:
  struct Header {
    bool present;
    const char* guess;  ///< why it is a header; null if that is clear
  };
  Header find_header() const;
  Header find_numeric_header(size_t begin) const;
  bool is_name(std::string_view cell) const;
  bool are_row_names(bool or_quoted) const;
  bool are_row_numbers() const;
  bool last_is_empty(bool shorter) const;
  bool find_index(bool shorter);
  bool take_comment_names();
  void select_columns();
  std::vector<size_t> find_columns(const std::vector<std::string>& wanted,
                                   const char* option) const;
  void say_what_was_decided(const Header& header, bool last_dropped);
  [[noreturn]] void fail_row(int64_t row, const std::string& why) const;

  const Source source_;
  const TextOptions options_;
  const Rules rules_;
  const Cells cells_;
  int64_t first_row_ = 0;
  bool labelled_ = false;
  std::vector<size_t> columns_;  // positions in a row of the selected columns
  std::vector<std::string> names_;
  TextReading reading_;
};

}  // namespace nsimplex::io

namespace nsimplex {

// Without `detect`, which is called auto where it can be chosen.
template <>
inline constexpr Names<io::Delimiter, 5> kNames<io::Delimiter>{
    {{"comma", io::Delimiter::comma},
     {"tab", io::Delimiter::tab},
     {"semicolon", io::Delimiter::semicolon},
     {"pipe", io::Delimiter::pipe},
     {"space", io::Delimiter::space}}};
template <>
inline constexpr Names<io::Encoding, 3> kNames<io::Encoding>{
    {{"auto", io::Encoding::detect},
     {"latin-1", io::Encoding::latin1},
     {"windows-1252", io::Encoding::windows1252}}};
template <>
inline constexpr Names<io::HeaderLine, 3> kNames<io::HeaderLine>{{{"auto", io::HeaderLine::detect},
                                                                  {"yes", io::HeaderLine::present},
                                                                  {"no", io::HeaderLine::absent}}};
template <>
inline constexpr Names<io::IndexColumn, 3> kNames<io::IndexColumn>{
    {{"auto", io::IndexColumn::detect},
     {"yes", io::IndexColumn::present},
     {"no", io::IndexColumn::absent}}};

}  // namespace nsimplex

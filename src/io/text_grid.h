#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/cells.h"

namespace nsimplex::io {

/// What a reader decided about a text, to be said and never silent.
struct TextReading {
  /// One decision, and the option that says otherwise: `option` "header" and `value` false means
  /// --header no at the command line and header=False in Python.
  struct Decision {
    std::string what, option = {};
    bool value = false;
    std::string otherwise = {};  ///< what the option does: "to read it as data"
    bool guessed = false;        ///< by the values alone, so that it may be wrong
  };
  bool text = false;  ///< false: an array, nothing was decided
  bool header = false, index = false;
  Delimiter delimiter = Delimiter::detect;
  std::vector<Decision> decisions;
};

/// "first row taken as names (--header no to read it as data); ..": all decisions as the command
/// line says them, or those that were guessed, as Python says them; "" where there are none.
std::string command_line_notice(const TextReading& reading);
std::string python_notice(const TextReading& reading);

/// "comma", "tab", "semicolon", "pipe" or "space", and back; nothing for another name.
std::string delimiter_name(Delimiter delimiter);
std::optional<Delimiter> parse_delimiter(std::string_view name);

/// Whether the first line of a text has the names of the columns, and its first column those of the
/// rows. `detect`: the rules of TextGrid decide.
enum class HeaderLine { detect, present, absent };
enum class IndexColumn { detect, present, absent };

/// How a text of rows and columns is to be read; the same for every kind of file.
struct TextOptions {
  HeaderLine header = HeaderLine::detect;
  IndexColumn index = IndexColumn::detect;
  Delimiter delimiter = Delimiter::detect;
  /// A line that begins with this character is a comment; nothing: "#" above the first row.
  std::optional<std::string> comment;
  std::vector<std::string> missing_words;  ///< besides is_missing()
  std::vector<std::string> use;            ///< names of the columns to read; empty: all
  std::vector<std::string> leave_out;      ///< names of columns to pass over
};

/// A text as rows and columns of cells, with the names that it has of both.
///
/// The first row has names where (the first that applies)
///   - it has one cell less than every row below, or it has cells in quotes above cells without;
///   - its first cell is empty and the others are different words or whole numbers;
///   - one of its cells is a name: no number, none of the words for missing, infinite, true and
///     false, and nothing that begins as a number does. But not where the others are numbers with
///     fractions, nor where only the first cell is a name and the whole first column are names;
///   - `numeric_names` are possible and it has three or more consecutive whole numbers, or two or
///     more different ones above columns that all hold fractions.
/// The first column has row names where the header has no name for it, or where its cells are
/// different names. A last column that is empty in every row is left out.
///
/// Fails for rows of different width, with the line, and for a text without rows or columns. Takes
/// time proportional to the bytes.
class TextGrid {
 public:
  /// What differs between kinds of files.
  struct Rules {
    bool numeric_names = true;  ///< whole numbers may be names of columns
    bool named_rows = true;     ///< a first column of different names is one of row names
    CellsOptions cells = {.comments = "#", .comments_anywhere = false};
    /// Decides for this kind of file whether the first row has names; null: the rules above.
    bool (*is_header)(const Cells& cells) = nullptr;
    const char* nothing = "a table without rows";  ///< what is said of a text without rows
  };
  TextGrid(const Source& source, const TextOptions& options, const Rules& rules);
  TextGrid(const Source& source, const TextOptions& options) : TextGrid(source, options, Rules{}) {}

  int64_t rows() const { return cells_.rows() - first_row_; }
  int64_t width() const { return static_cast<int64_t>(columns_.size()); }
  const std::vector<std::string>& names() const { return names_; }  ///< empty where it has none
  std::vector<std::string> labels() const;                          ///< of rows; empty likewise

  std::string_view at(int64_t row, int64_t column) const {
    return cells_.row(first_row_ + row)[columns_[column]];
  }
  bool is_quoted(int64_t row, int64_t column) const {
    return cells_.is_quoted(first_row_ + row, columns_[column]);
  }
  int64_t line(int64_t row) const { return cells_.line(first_row_ + row); }
  /// A column as messages call it: its name, or x0, x1, .. by its number.
  std::string column_name(int64_t column) const;
  const TextReading& reading() const { return reading_; }

  /// Throws InputError "cannot read NAME: line L, column C: WHY".
  [[noreturn]] void fail_at(int64_t row, int64_t column, const std::string& why) const;

 private:
  struct Header {
    bool present;
    const char* guess;  ///< why it is taken for names, or null where that is clear
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
  std::vector<size_t> columns_;  // cells of a row that are columns
  std::vector<std::string> names_;
  TextReading reading_;
};

}  // namespace nsimplex::io

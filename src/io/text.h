// Declares how numbers, missing values and the encoding of a text are read.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/input_file.h"

namespace nsimplex::io {

/// How the numbers of a text are written: the character before decimals, and the one between groups
/// of three digits, or 0. A blank as the latter also stands for blanks that do not break.
struct NumberFormat {
  char decimal = '.';
  char thousands = '\0';
};

/// Parses a whole text as a number, as people write them: "-1.5e3", "+2", but not "inf", "nan",
/// "0x10" or "1 ". A number that is too small for a double is 0. For one that is too large it
/// returns nothing.
std::optional<double> parse_number(std::string_view text);
std::optional<double> parse_number(std::string_view text, NumberFormat format);

/// Whether a text is written as a number, but beyond the largest double (1.8e308): "1e400".
bool is_too_large(std::string_view text);

/// Parses a whole text as an integer of 64 bits: "-12", "+3".
std::optional<int64_t> parse_integer(std::string_view text);

/// Whether a cell means a missing number: it is empty; NA, N/A, NaN, null, nil or None in any case,
/// also as <NA>, #N/A, #NA and -nan; or ?, - or a point.
bool is_missing(std::string_view text);

/// Parses a whole text as one of the words true and false, in any case.
std::optional<bool> parse_truth(std::string_view text);

/// Whether a word is meant as a value and not as a name: it begins like a number, or it is one of
/// the words for infinity, true and false, in any case.
bool is_like_value(std::string_view text);

/// The encoding of a text without a byte order mark. `detect`: UTF-8.
enum class Encoding { detect, latin1, windows1252 };

/// The contents of a text file, as UTF-8 without a byte order mark. Every reader of text uses this
/// class, so encodings are handled in one place.
///
/// A byte order mark distinguishes UTF-8 and UTF-16 (either byte order). Without a mark the bytes
/// are UTF-8, unless another encoding is named. Fails, with the line, for bytes that are not valid in that encoding. Also fails for
/// UTF-32, gzip and files with zero bytes, which are not text. Line ends stay as they are: see
/// take_line().
class Text {
 public:
  /// The bytes of `source` must outlive this object.
  explicit Text(const Source& source, Encoding encoding = Encoding::detect);
  Text(const Text&) = delete;  // the view may be of this object's own string
  Text& operator=(const Text&) = delete;

  std::string_view view() const { return view_; }

 private:
  std::string decoded_;  // of other encodings than UTF-8
  std::string_view view_;
};

/// Takes the first line off a text and returns it without its end: LF, CR LF or CR.
std::string_view take_line(std::string_view& rest);

/// How many ends of lines a text has.
int64_t count_line_ends(std::string_view text);

/// Whether a text begins with the end of a line.
inline bool at_line_end(std::string_view rest) {
  return !rest.empty() && (rest.front() == '\n' || rest.front() == '\r');
}

/// Takes the end of a line, which the text must begin with, off it.
void take_line_end(std::string_view& rest);

}  // namespace nsimplex::io

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/source.h"

namespace nsimplex::io {

/// What a text file says, as UTF-8 without a byte order mark. Every reader of text goes through
/// this, so that encodings are settled in one place.
///
/// A byte order mark tells UTF-8 and UTF-16 (either byte order) apart; without one the bytes are
/// UTF-8. Fails for bytes that are not valid in that encoding, with the line; for UTF-32, gzip and
/// files with zero bytes, which are no text. Line ends are left as they are: see take_line().
class Text {
 public:
  /// The bytes of `source` must live as long as this.
  explicit Text(const Source& source);
  Text(const Text&) = delete;  // the view may be of this object's own string
  Text& operator=(const Text&) = delete;

  std::string_view view() const { return view_; }

 private:
  std::string decoded_;  // of UTF-16
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

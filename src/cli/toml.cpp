// Parses TOML files and quotes TOML values.

#include "cli/toml.h"

#include <algorithm>

#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_bare(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

class TomlReader {
 public:
  explicit TomlReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF")) {
      fail("expected UTF-8, got UTF-16");
    }
  }

  std::vector<TomlEntry> entries() {
    std::vector<TomlEntry> entries;
    for (skip_lines(); !ended(); skip_lines()) {
      entries.push_back(entry());
      skip_blanks();
      if (!ended() && !at_line_end()) fail("expected the end of the line, got " + rest());
    }
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(std::string("line ").append(std::to_string(line_)).append(": ").append(what));
  }

  bool ended() const { return at_ == text_.size(); }
  char next() const { return ended() ? '\0' : text_[at_]; }
  bool ahead(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool at_newline() const { return next() == '\n' || next() == '\r'; }
  bool at_line_end() const { return at_newline() || next() == '#'; }

  bool take(std::string_view what) {
    if (!ahead(what)) return false;
    at_ += what.size();
    return true;
  }

  void take_newline() {
    if (!take("\r\n")) ++at_;
    ++line_;
  }

  void skip_blanks() {
    while (next() == ' ' || next() == '\t') ++at_;
  }

  // Skips blanks, comments and empty lines.
  void skip_lines() {
    for (;;) {
      skip_blanks();
      if (!ended() && next() == '#') {
        while (!ended() && !at_newline()) ++at_;
      }
      if (ended() || !at_newline()) return;
      take_newline();
    }
  }

  // The rest of the line, for errors.
  std::string rest() const {
    const std::string_view line = text_.substr(at_);
    return quoted_name(line.substr(0, line.find_first_of("\r\n")));
  }

  TomlEntry entry() {
    TomlEntry entry;
    entry.line = line_;
    if (next() == '[') {
      fail(std::string("expected name = value, got the section ")
               .append(rest())
               .append("; write one option per line, without sections, as in: steps = 500"));
    }
    entry.name = name();
    skip_blanks();
    if (next() == '.')
      fail("expected a name without a point, got " + quoted_name(entry.name) + rest());
    if (!take("=")) {
      fail(std::string("expected name = value, got ")
               .append(rest())
               .append(" after the name ")
               .append(quoted_name(entry.name)));
    }
    skip_blanks();
    if (take("[")) {
      entry.list = true;
      entry.values = members();
      return entry;
    }
    entry.values.push_back(scalar());
    for (skip_blanks(); take(","); skip_blanks()) {  // a list in the syntax of the command line
      skip_blanks();
      entry.list = true;
      entry.values.push_back(scalar());
    }
    return entry;
  }

  std::string name() {
    if (next() == '"' || next() == '\'') return string();
    const size_t begin = at_;
    while (!ended() && is_bare(next())) ++at_;
    if (at_ == begin) fail("expected name = value, got " + rest());
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Members of a list, after its bracket.
  std::vector<std::string> members() {
    std::vector<std::string> values;
    const int64_t first_line = line_;
    for (skip_lines(); !take("]"); skip_lines()) {
      if (ended()) fail("expected a ] to the list of line " + std::to_string(first_line));
      if (next() == '[') fail("expected no list inside a list");
      values.push_back(scalar());
      skip_lines();
      if (!take(",") && next() != ']' && !ended())
        fail("expected a comma or ] in a list, got " + rest());
    }
    return values;
  }

  std::string scalar() {
    if (next() == '"' || next() == '\'') return string();
    if (next() == '{') fail("expected a number, a text or a list, got a table");
    return bare();
  }

  // A number, a boolean or a word.
  std::string bare() {
    constexpr std::string_view kEnds = ",]#\r\n";
    const size_t begin = at_;
    while (!ended() && kEnds.find(next()) == std::string_view::npos) ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    while (word.ends_with(' ') || word.ends_with('\t')) word.remove_suffix(1);
    if (word.empty()) fail("expected a value");
    if (word.find_first_of(" \t\"'[{}=") != std::string_view::npos) {
      fail("expected text in quotation marks, got " + quoted_name(word));
    }
    std::string text(word);
    constexpr std::string_view kOfNumbers = "0123456789_.eE+-";
    if (is_digit(text.back()) && text.find_first_not_of(kOfNumbers) == std::string::npos) {
      std::erase(text, '_');
    }
    return text;
  }

  // "..", '..', """..""" or '''..'''.
  std::string string() {
    const char mark = next();
    const std::string one(1, mark), three(3, mark);
    const bool many_lines = ahead(three);
    const std::string& end = many_lines ? three : one;
    const int64_t first_line = line_;
    take(end);
    if (many_lines && at_newline()) take_newline();
    std::string text;
    while (!take(end)) {
      if (ended() || (!many_lines && at_newline())) {
        fail(std::string("expected a ")
                 .append(end)
                 .append(" to the text of line ")
                 .append(std::to_string(first_line)));
      }
      if (at_newline()) {
        take_newline();
        text += '\n';
      } else if (mark == '"' && take("\\")) {
        text += escaped(many_lines);
      } else {
        text += text_[at_++];
      }
    }
    // Up to two quotation marks may precede the three that end a text.
    for (int more = 0; many_lines && more < 2 && take(one); ++more) text += mark;
    return text;
  }

  // The character of an escape whose backslash was just read.
  std::string escaped(bool many_lines) {
    if (many_lines) {
      const size_t begin = at_;
      skip_blanks();
      if (at_newline()) {  // the text continues at the next letter
        while (at_newline() || next() == ' ' || next() == '\t') {
          at_newline() ? take_newline() : skip_blanks();
        }
        return "";
      }
      at_ = begin;
    }
    constexpr std::string_view kLetters = "btnfr\"\\", kBytes = "\b\t\n\f\r\"\\";
    const size_t known = kLetters.find(next());
    if (!ended() && known != std::string_view::npos) {
      ++at_;
      return {kBytes[known]};
    }
    if (take("u")) return character(4);
    if (take("U")) return character(8);
    fail("expected \\\\, \\\", \\n, \\t or \\u0041, got " + quoted_name(text_.substr(at_ - 1, 2)));
  }

  // A character as UTF-8, from its number in this many hexadecimal digits.
  std::string character(size_t digits) {
    const std::string_view word = text_.substr(at_, digits);
    constexpr std::string_view kDigits = "0123456789abcdef";
    uint64_t code = 0;
    for (const char c : word) {
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const size_t digit = kDigits.find(lower);
      if (digit == std::string_view::npos)
        fail("expected hexadecimal digits, got " + quoted_name(word));
      code = code * 16 + digit;
    }
    const bool letter = code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    if (word.size() < digits || !letter)
      fail("expected the number of a character, got " + quoted_name(word));
    at_ += digits;
    std::string text;
    append_utf8(text, static_cast<uint32_t>(code));
    return text;
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

// Whether TOML reads `text` as a number: 5, -0.5, 1e-8, but not 007, .5 or 5.
bool is_number(std::string_view text) {
  const auto digits = [&] {
    const auto count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  const auto take = [&](std::string_view any) {
    const bool found = !text.empty() && any.find(text.front()) != std::string_view::npos;
    if (found) text.remove_prefix(1);
    return found;
  };
  take("+-");
  const bool zero = text.starts_with('0');
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (take(".") && digits() == 0) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return text.empty();
}

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text) { return TomlReader(text).entries(); }

std::string toml_value(std::string_view text) {
  if (text == "true" || text == "false" || text == "inf" || text == "nan" || is_number(text)) {
    return std::string(text);
  }
  constexpr std::string_view kBytes = "\b\t\n\f\r\"\\", kLetters = "btnfr\"\\";
  std::string value = "\"";
  for (const char c : text) {
    const size_t known = kBytes.find(c);
    const auto byte = static_cast<unsigned char>(c);
    if (known != std::string_view::npos) {
      value += {'\\', kLetters[known]};
    } else if (byte < 0x20 || byte == 0x7F) {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      value.append("\\u00").append({kDigits[byte >> 4], kDigits[byte & 15]});
    } else {
      value += c;
    }
  }
  return value + "\"";
}

}  // namespace nsimplex::cli

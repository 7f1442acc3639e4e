// Splits a text table into cells and detects its delimiter.

#include "io/cells.h"

#include <algorithm>
#include <array>
#include <utility>

#include "io/text.h"

namespace nsimplex::io {
namespace {

constexpr std::array<std::pair<char, Delimiter>, 4> kSeparators = {{{'\t', Delimiter::tab},
                                                                    {',', Delimiter::comma},
                                                                    {';', Delimiter::semicolon},
                                                                    {'|', Delimiter::pipe}}};

constexpr size_t kComma = 1;

char separator_of(Delimiter delimiter) {
  for (const auto& [separator, each] : kSeparators) {
    if (each == delimiter) return separator;
  }
  return ' ';
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The parts of a line outside quotes: each separator, and words between blanks.
struct Line {
  std::array<int64_t, kSeparators.size()> separators{};
  int64_t words = 0;
};

Line take_counted(std::string_view& rest) {
  Line line;
  bool in_quotes = false, in_word = false, begins = true;
  while (!rest.empty()) {
    const char c = rest.front();
    if (!in_quotes && at_line_end(rest)) break;
    rest.remove_prefix(1);
    if (in_quotes) {
      const bool doubled = c == '"' && rest.starts_with('"');
      if (doubled) rest.remove_prefix(1);
      in_quotes = c != '"' || doubled;
      continue;
    }
    bool separates = is_blank(c);
    for (size_t at = 0; at < kSeparators.size(); ++at) {
      if (c != kSeparators[at].first) continue;
      ++line.separators[at];
      separates = true;
    }
    in_quotes = c == '"' && (begins || !in_word);
    if (!is_blank(c) && !in_word) ++line.words;
    in_word = !is_blank(c);
    begins = separates;
  }
  if (!rest.empty()) take_line_end(rest);
  return line;
}

Delimiter detect(std::string_view rest, const CellsOptions& options) {
  std::array<Line, 2> lines;
  size_t found = 0;
  while (found < lines.size() && !rest.empty()) {
    std::string_view ahead = rest;
    const std::string_view text = trimmed(take_line(ahead));
    if (text.empty() || options.comments.find(text.front()) != std::string_view::npos) {
      rest = ahead;
      continue;
    }
    lines[found] = take_counted(rest);
    if (options.decimal_comma) lines[found].separators[kComma] = 0;
    ++found;
  }
  const auto agrees = [&](int64_t first, int64_t second) {
    return found < 2 || second == first || second == first + 1;
  };
  for (size_t at = 0; at < kSeparators.size(); ++at) {
    const int64_t first = lines[0].separators[at];
    if (first > 0 && agrees(first, lines[1].separators[at])) return kSeparators[at].second;
  }
  if (options.loose) return Delimiter::space;
  const auto occurs = [&](size_t at) {
    return std::max(lines[0].separators[at], lines[1].separators[at]) > 0;
  };
  if (options.detect_blanks && lines[0].words > 1 && agrees(lines[0].words, lines[1].words)) {
    return Delimiter::space;
  }
  for (size_t at = 0; at < kSeparators.size(); ++at) {
    if (occurs(at)) return kSeparators[at].second;
  }
  return options.detect_blanks && lines[1].words > 1 && agrees(lines[0].words, lines[1].words)
             ? Delimiter::space
             : Delimiter::comma;
}

}  // namespace

Cells::Cells(const Source& source, const CellsOptions& options)
    : source_(source), options_(options), text_(source_, options_.encoding), rest_(text_.view()) {
  delimiter_ = options.delimiter;
  take_separator_line();
  if (delimiter_ == Delimiter::detect) delimiter_ = detect(rest_, options_);
  separator_ = separator_of(delimiter_);
  while (!rest_.empty()) {
    if (!skip_comment()) read_row();
  }
}

void Cells::take_separator_line() {
  if (!rest_.starts_with("sep=") || rest_.size() < 5) return;
  std::string_view rest = rest_;
  const std::string_view line = take_line(rest);
  const auto found =
      std::ranges::find(kSeparators, line.back(), [](const auto& each) { return each.first; });
  if (line.size() != 5 || found == kSeparators.end()) return;
  if (delimiter_ == Delimiter::detect) delimiter_ = found->second;
  rest_ = rest;
  ++line_;
}

bool Cells::skip_comment() {
  if (options_.comments.empty() || (!options_.comments_anywhere && rows() > 0)) return false;
  const size_t begin = rest_.find_first_not_of(" \t");
  if (begin == std::string_view::npos ||
      options_.comments.find(rest_[begin]) == std::string_view::npos) {
    return false;
  }
  const auto end =
      std::find_if(rest_.begin() + begin, rest_.end(), [&](char c) { return ends_cell(c); });
  if (is_missing(rest_.substr(begin, end - rest_.begin() - begin))) return false;  // like "#N/A"
  const std::string_view comment = take_line(rest_);
  if (rows() == 0) comment_above_ = comment.substr(std::min(begin + 1, comment.size()));
  ++comments_;
  ++line_;
  return true;
}

// Reads a line, or several if quotes hold their ends. A line with a single empty cell without
// quotes is blank.
void Cells::read_row() {
  const int64_t line = line_;
  bool more = true;
  while (more) {
    if (separator_ == ' ') skip_blanks();
    if (separator_ == ' ' && (rest_.empty() || at_line_end(rest_)) &&
        cells_.size() > begin_.back()) {
      break;
    }
    read_cell();
    more = !rest_.empty() && !at_line_end(rest_);
    if (more && separator_ != ' ') rest_.remove_prefix(1);
  }
  if (!rest_.empty()) take_line_end(rest_);
  ++line_;
  if (cells_.size() - begin_.back() == 1 && cells_.back().empty() && !quoted_.back()) {
    cells_.pop_back();
    quoted_.pop_back();
    return;
  }
  begin_.push_back(cells_.size());
  lines_.push_back(line);
}

void Cells::fail_here(const std::string& why) const {
  source_.fail("line " + std::to_string(line_) + ": " + why);
}

bool Cells::ends_cell(char c) const {
  if (c == '\n' || c == '\r') return true;
  if (separator_ != ' ') return c == separator_;
  return is_blank(c) || (options_.loose && (c == ',' || c == ';'));
}

void Cells::skip_blanks() {
  const auto skipped = [&](char c) {
    return is_blank(c) || (options_.loose && (c == ',' || c == ';'));
  };
  while (!rest_.empty() && skipped(rest_.front())) rest_.remove_prefix(1);
}

// Leaves rest_ at the delimiter or line end after the cell.
void Cells::read_cell() {
  const size_t first = std::min(rest_.find_first_not_of(' '), rest_.size());
  if (rest_.substr(first).starts_with('"')) {
    rest_.remove_prefix(first);
    read_quoted();
    return;
  }
  const auto end = std::ranges::find_if(rest_, [this](char c) { return ends_cell(c); });
  const std::string_view cell = rest_.substr(0, end - rest_.begin());
  rest_.remove_prefix(cell.size());
  cells_.push_back(trimmed(cell));
  quoted_.push_back(false);
}

void Cells::read_quoted() {
  const std::string_view whole = rest_;
  bool doubled = false;
  size_t at = 1;
  while (true) {
    at = whole.find('"', at);
    if (at == std::string_view::npos) fail_here("a quote without its end");
    if (at + 1 >= whole.size() || whole[at + 1] != '"') break;
    doubled = true;
    at += 2;
  }
  std::string_view cell = whole.substr(1, at - 1);
  rest_ = whole.substr(at + 1);
  rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
  // If blanks delimit, blanks after the quote were the delimiter.
  const bool parted = separator_ == ' ' && rest_.size() < whole.size() - at - 1;
  if (!rest_.empty() && !parted && !ends_cell(rest_.front())) {
    fail_here("expected the end of the cell behind " + quoted_name(cell));
  }
  line_ += count_line_ends(cell);
  if (doubled) {
    std::string& plain = unescaped_.emplace_back();
    for (size_t i = 0; i < cell.size(); ++i) {
      plain += cell[i];
      if (cell[i] == '"') ++i;
    }
    cell = plain;
  }
  cells_.push_back(cell);
  quoted_.push_back(true);
}

std::vector<std::string_view> words_of_comment(std::string_view comment, Delimiter delimiter) {
  const char separator = separator_of(delimiter);
  std::vector<std::string_view> words;
  for (std::string_view rest = comment; !rest.empty();) {
    const auto end = std::ranges::find_if(
        rest, [&](char c) { return separator == ' ' ? is_blank(c) : c == separator; });
    const std::string_view word = trimmed(rest.substr(0, end - rest.begin()));
    if (separator != ' ' || !word.empty()) words.push_back(word);
    rest.remove_prefix(end - rest.begin() + (end != rest.end() ? 1 : 0));
  }
  return words;
}

}  // namespace nsimplex::io

#include "io/cells.h"

#include <algorithm>

namespace nsimplex::io {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

char guess_separator(std::string_view text) {
  const std::string_view line =
      text.substr(0, text.find_first_of("\n", text.find_first_not_of("\r\n")));
  for (const char separator : {'\t', ',', ';'}) {
    if (line.find(separator) != std::string_view::npos) return separator;
  }
  return ',';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

Cells::Cells(const Source& source, char separator) : source_(source), rest_(source.text()) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  separator_ = separator != 0 ? separator : guess_separator(rest_);
  while (!rest_.empty()) {
    const int64_t line = line_;
    bool more = true;
    while (more) {
      cells_.push_back(read_cell());
      more = !rest_.empty() && rest_.front() == separator_;
      if (!rest_.empty()) rest_.remove_prefix(1);  // the separator or the end of the line
    }
    ++line_;
    end_row(line);
  }
}

// Closes a row; one that has a single empty cell is a blank line.
void Cells::end_row(int64_t line) {
  if (cells_.size() - begin_.back() == 1 && cells_.back().empty()) {
    cells_.pop_back();
    return;
  }
  begin_.push_back(cells_.size());
  lines_.push_back(line);
}

void Cells::fail_here(const std::string& why) const {
  source_.fail("line " + std::to_string(line_) + ": " + why);
}

bool Cells::at_line_end() const {
  return rest_.empty() || rest_.front() == '\n' || rest_.starts_with("\r\n");
}

// Leaves rest_ at the separator or line end behind the cell.
std::string_view Cells::read_cell() {
  const size_t first = std::min(rest_.find_first_not_of(' '), rest_.size());
  if (rest_.substr(first).starts_with('"')) {
    rest_.remove_prefix(first);
    return read_quoted();
  }
  const size_t end = std::min({rest_.find(separator_), rest_.find('\n'), rest_.size()});
  const std::string_view cell = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return trimmed(cell);
}

std::string_view Cells::read_quoted() {
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
  if (!at_line_end() && rest_.front() != separator_) {
    fail_here("expected the end of the cell behind " + quoted(cell));
  }
  if (rest_.starts_with('\r')) rest_.remove_prefix(1);
  line_ += std::count(cell.begin(), cell.end(), '\n');
  if (doubled) {
    std::string& plain = unescaped_.emplace_back();
    for (size_t i = 0; i < cell.size(); ++i) {
      plain += cell[i];
      if (cell[i] == '"') ++i;
    }
    cell = plain;
  }
  return cell;
}

}  // namespace nsimplex::io

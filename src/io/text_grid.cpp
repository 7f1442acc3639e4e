// Decides which rows and columns of a text table are names, and returns the cells.

#include "io/text_grid.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "io/text.h"

namespace nsimplex::io {
namespace {

CellsOptions cells_options(const TextOptions& options, CellsOptions result) {
  result.delimiter = options.delimiter;
  result.encoding = options.encoding;
  result.decimal_comma = options.numbers.decimal == ',';
  if (options.comment) {
    result.comments = *options.comment;
    result.comments_anywhere = true;
  }
  return result;
}

bool is_whole(std::string_view cell) {
  const auto number = parse_number(cell);
  return number && *number == std::trunc(*number);
}

bool is_fraction(std::string_view cell, NumberFormat format) {
  const auto number = parse_number(cell, format);
  return number && *number != std::trunc(*number);
}

bool all_differ(std::span<const std::string_view> cells) {
  const std::unordered_set<std::string_view> seen(cells.begin(), cells.end());
  return seen.size() == cells.size();
}

}  // namespace

TextGrid::TextGrid(const Source& source, const TextOptions& options, const Rules& rules)
    : source_(source),
      options_(options),
      rules_(rules),
      cells_(source_, cells_options(options_, rules_.cells)) {
  if (cells_.rows() == 0) source_.fail(rules_.nothing);
  const Header header = find_header();
  first_row_ = header.present ? 1 : 0;
  if (rows() == 0) source_.fail(rules_.nothing);

  const size_t first = cells_.row(0).size();
  size_t width = cells_.row(first_row_).size();
  bool shorter = first + 1 == width;
  if (first != width && !shorter) {
    fail_row(0, "expected " + std::to_string(first) + " cells as in line " +
                    std::to_string(cells_.line(0)) + ", got " + std::to_string(width));
  }
  for (int64_t row = 1; row < rows(); ++row) {
    const size_t got = cells_.row(first_row_ + row).size();
    if (got == width) continue;
    const bool comment = cells_.row(first_row_ + row)[0].starts_with('#');
    fail_row(row, "expected " + std::to_string(width) + " cells as in line " +
                      std::to_string(line(0)) + ", got " + std::to_string(got) +
                      (comment ? " (is this a comment? see --comment)" : ""));
  }

  const bool last_dropped = last_is_empty(shorter);
  if (last_dropped) {
    --width;
    shorter = false;
  }
  labelled_ = find_index(shorter);
  for (size_t column = labelled_ ? 1 : 0; column < width; ++column) columns_.push_back(column);
  if (columns_.empty()) source_.fail("a table without columns");
  if (header.present) {
    const auto names = cells_.row(0).subspan(labelled_ && !shorter ? 1 : 0);
    names_.assign(names.begin(), names.begin() + std::ssize(columns_));
  }
  reading_.text = true;
  reading_.delimiter = cells_.delimiter();
  reading_.index = labelled_;
  say_what_was_decided(header, last_dropped);
  select_columns();
}

bool TextGrid::is_name(std::string_view cell) const {
  return !parse_number(cell) && !is_missing(cell) && !is_like_value(cell) &&
         std::ranges::find(options_.missing_words, cell) == options_.missing_words.end();
}

TextGrid::Header TextGrid::find_header() const {
  if (options_.header != HeaderLine::detect) {
    return {options_.header == HeaderLine::present, nullptr};
  }
  if (rules_.is_header != nullptr) return {rules_.is_header(cells_), nullptr};
  const auto names = cells_.row(0);
  const bool alone = cells_.rows() == 1;
  const size_t below = alone ? names.size() : cells_.row(1).size();
  const size_t shift = below == names.size() + 1 ? 1 : 0;
  if (shift == 1) return {true, nullptr};
  for (size_t column = 0; column < std::min(names.size(), below) && !alone; ++column) {
    if (cells_.is_quoted(0, column) && !cells_.is_quoted(1, column)) return {true, nullptr};
  }
  const auto others = names.subspan(1);
  if (!alone && !others.empty() && names[0].empty() && all_differ(others)) {
    const bool words = std::ranges::all_of(others, [&](auto cell) { return is_name(cell); });
    const bool numbers = std::ranges::all_of(others, is_whole);
    if (words || (numbers && rules_.numeric_names)) return {true, nullptr};
  }
  if (std::ranges::any_of(names, [&](auto cell) { return is_name(cell); })) {
    const bool only_first =
        std::ranges::none_of(others, [&](auto cell) { return is_name(cell); }) && !others.empty();
    if (only_first && !alone && below == names.size() && are_row_names(false)) {
      return find_numeric_header(1);
    }
    const auto fraction = [&](auto cell) { return is_fraction(cell, options_.numbers); };
    return {std::ranges::none_of(names, fraction), nullptr};
  }
  const bool all_like_names = std::ranges::all_of(names, [&](std::string_view cell) {
    const bool digits = cell.find_first_of("0123456789") != std::string_view::npos;
    return digits && !parse_number(cell, options_.numbers) && !is_missing(cell) &&
           !is_too_large(cell);
  });
  if (all_like_names) return {true, "no cell of it is a number"};
  return find_numeric_header(0);
}

// Whether the whole numbers of the first row, from a given column on, are names.
TextGrid::Header TextGrid::find_numeric_header(size_t begin) const {
  const auto names = cells_.row(0).subspan(begin);
  const bool possible =
      rules_.numeric_names && names.size() >= 2 && cells_.rows() > 1 &&
      std::ranges::all_of(names, [](auto cell) { return parse_integer(cell).has_value(); });
  if (!possible || !all_differ(names)) return {false, nullptr};
  // Two numbers can be consecutive by chance.
  bool consecutive = names.size() >= 3;
  for (size_t column = 1; column < names.size() && consecutive; ++column) {
    // This order of operations cannot overflow.
    consecutive = *parse_integer(names[column]) - 1 == *parse_integer(names[column - 1]);
  }
  if (consecutive) return {true, "its numbers are consecutive"};
  std::vector<bool> fraction(names.size());
  for (int64_t row = 1; row < cells_.rows(); ++row) {
    const auto cells = cells_.row(row);
    for (size_t column = 0; column < names.size() && begin + column < cells.size(); ++column) {
      if (!fraction[column])
        fraction[column] = is_fraction(cells[begin + column], options_.numbers);
    }
  }
  const bool all = std::ranges::all_of(fraction, [](bool has) { return has; });
  if (all) return {true, "it has whole numbers above columns of fractions"};
  return {false, nullptr};
}

// Whether the first cells of the rows are different names. `or_quoted`: numbers in quotes are
// names.
bool TextGrid::are_row_names(bool or_quoted) const {
  std::unordered_set<std::string_view> seen;
  for (int64_t row = first_row_; row < cells_.rows(); ++row) {
    const std::string_view cell = cells_.row(row)[0];
    if (!is_name(cell) && !(or_quoted && cells_.is_quoted(row, 0) && !cell.empty())) return false;
    if (!seen.insert(cell).second) return false;
  }
  return true;
}

// Whether the first column counts the rows, from 0 or 1.
bool TextGrid::are_row_numbers() const {
  const auto first = parse_integer(cells_.row(first_row_)[0]);
  if (!first || (*first != 0 && *first != 1)) return false;
  for (int64_t row = 0; row < rows(); ++row) {
    if (parse_integer(cells_.row(first_row_ + row)[0]) != *first + row) return false;
  }
  return true;
}

// Whether every row ends with a delimiter, so that its last cell is not a cell.
bool TextGrid::last_is_empty(bool shorter) const {
  const size_t last = cells_.row(first_row_).size() - 1;
  if (last == 0 || rows() < 2) return false;
  if (first_row_ == 1 && !shorter && !cells_.row(0)[last].empty()) return false;
  for (int64_t row = first_row_; row < cells_.rows(); ++row) {
    if (!cells_.row(row)[last].empty() || cells_.is_quoted(row, last)) return false;
  }
  return true;
}

// Whether the first column has row names. `shorter`: the header has one cell less than the rows.
bool TextGrid::find_index(bool shorter) {
  if (options_.index == IndexColumn::present) return true;
  const bool may = options_.index == IndexColumn::detect;
  if (shorter) {
    if (may && (are_row_names(true) || are_row_numbers())) return true;
    const size_t width = cells_.row(first_row_).size();
    fail_row(0, "expected " + std::to_string(width - 1) + " cells as in line " +
                    std::to_string(cells_.line(0)) + ", got " + std::to_string(width));
  }
  if (!may || cells_.row(first_row_).size() < 2) return false;
  if (first_row_ == 1 && cells_.row(0)[0].empty()) return true;
  return rules_.named_rows && are_row_names(false);
}

// A comment right above the first row has the names if its number of words equals the number of
// columns.
bool TextGrid::take_comment_names() {
  const auto words = words_of_comment(cells_.comment_above(), cells_.delimiter());
  if (words.size() != columns_.size() || !all_differ(words)) return false;
  if (!std::ranges::all_of(words, [&](auto word) { return is_name(word); })) return false;
  names_.assign(words.begin(), words.end());
  return true;
}

void TextGrid::say_what_was_decided(const Header& header, bool last_dropped) {
  const auto say = [&](TextReading::Decision decision) {
    reading_.decisions.push_back(std::move(decision));
  };
  const bool asked = options_.header != HeaderLine::detect;
  if (header.present) {
    reading_.header = true;
    if (asked) {
      say({"first row taken as names", "", false, "", false});
    } else {
      const std::string why = header.guess == nullptr ? "" : std::string(", since ") + header.guess;
      say({"first row taken as names" + why, "header", false, "to read it as data",
           header.guess != nullptr});
    }
  } else if (!asked && rules_.is_header == nullptr && take_comment_names()) {
    reading_.header = true;
    say({"names taken from the comment above the first row", "header", false,
         "to leave the columns without names", true});
  } else if (asked) {
    say({"first row taken as data", "", false, "", false});
  } else {
    say({"first row taken as data", "header", true, "to take it as names", false});
  }
  if (labelled_) {
    const bool chosen = options_.index == IndexColumn::present;
    const bool clear = chosen || (first_row_ == 1 && cells_.row(0)[0].empty());
    say({"first column taken as row names", chosen ? "" : "index", false,
         chosen ? "" : "to read it as data", !clear && header.present});
  }
  if (last_dropped)
    say({"the last field of every row is empty and was left out", "", false, "", true});
  if (cells_.comments() > 0) {
    say({std::to_string(cells_.comments()) +
             (cells_.comments() == 1 ? " comment passed over" : " comments passed over"),
         "", false, "", false});
  }
}

std::vector<std::string> TextGrid::labels() const {
  std::vector<std::string> labels;
  for (int64_t row = first_row_; labelled_ && row < cells_.rows(); ++row) {
    labels.emplace_back(cells_.row(row)[0]);
  }
  return labels;
}

std::string TextGrid::column_name(int64_t column) const {
  if (!names_.empty()) return printable(names_[column]);
  return std::string("x").append(std::to_string(columns_[column] - (labelled_ ? 1 : 0)));
}

std::vector<size_t> TextGrid::find_columns(const std::vector<std::string>& wanted,
                                           const char* option) const {
  std::vector<size_t> found;
  for (const std::string& name : wanted) {
    const size_t before = found.size();
    for (int64_t column = 0; column < width(); ++column) {
      const bool same = names_.empty() ? column_name(column) == name : names_[column] == name;
      if (same) found.push_back(column);
    }
    if (found.size() == before) {
      source_.fail(std::string(option) + ": no column is called " + quoted_name(name));
    }
  }
  return found;
}

// Skipped columns are not looked at: their cells may be anything.
void TextGrid::select_columns() {
  if (options_.use.empty() && options_.leave_out.empty()) return;
  const std::vector<size_t> used = find_columns(options_.use, "--use-columns");
  const std::vector<size_t> left = find_columns(options_.leave_out, "--leave-out");
  std::vector<size_t> columns;
  std::vector<std::string> names;
  for (size_t column = 0; column < columns_.size(); ++column) {
    const bool use = used.empty() || std::ranges::find(used, column) != used.end();
    if (!use || std::ranges::find(left, column) != left.end()) continue;
    columns.push_back(columns_[column]);
    if (!names_.empty()) names.push_back(names_[column]);
  }
  if (columns.empty()) source_.fail("no column is left of those asked for");
  columns_ = std::move(columns);
  names_ = std::move(names);
}

void TextGrid::fail_row(int64_t row, const std::string& why) const {
  source_.fail("line " + std::to_string(line(row)) + ": " + why);
}

void TextGrid::fail_at(int64_t row, int64_t column, const std::string& why) const {
  source_.fail("line " + std::to_string(line(row)) + ", column " + column_name(column) + ": " +
               why);
}

namespace {

template <class Option>
std::string notice(const TextReading& reading, bool guesses_only, Option&& option) {
  std::string text;
  for (const TextReading::Decision& decision : reading.decisions) {
    if (guesses_only && !decision.guessed) continue;
    text.append(text.empty() ? "" : "; ").append(decision.what);
    if (decision.option.empty()) continue;
    text.append(" (").append(option(decision)).append(" ").append(decision.otherwise).append(")");
  }
  return text;
}

}  // namespace

std::string command_line_notice(const TextReading& reading) {
  return notice(reading, false, [](const TextReading::Decision& decision) {
    return "--" + decision.option + (decision.value ? " yes" : " no");
  });
}

std::string python_notice(const TextReading& reading) {
  return notice(reading, true, [](const TextReading::Decision& decision) {
    return decision.option + (decision.value ? "=True" : "=False");
  });
}

}  // namespace nsimplex::io

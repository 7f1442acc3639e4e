// Reads one text or number per row of a table from a file.

#include "data/row_texts.h"

#include <ATen/ATen.h>

#include <unordered_map>

#include "io/cells.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/table.h"
#include "io/text.h"

namespace nsimplex::data {
namespace {

std::string at_line(int64_t line) { return "line " + std::to_string(line) + ": "; }

class RowReader {
 public:
  RowReader(const io::Source& source, const Observations& observations, const std::string& what,
            bool numbers)
      : source_(source),
        observations_(observations),
        what_(what),
        cells_(source, {.detect_blanks = false}),
        count_(observations.values.size(0)) {
    if (cells_.rows() == 0) fail_count(0);
    const bool header =
        !numbers || !io::parse_number(cells_.row(0).back()) || cells_.rows() == count_ + 1;
    first_ = header ? 1 : 0;
    width_ = first_ < cells_.rows() ? cells_.row(first_).size() : cells_.row(0).size();
  }

  RowTexts read() const {
    RowTexts all;
    all.reading = reading();
    std::unordered_map<std::string_view, size_t> by_name;
    for (int64_t row = first_; row < cells_.rows(); ++row) {
      const auto own = cells_.row(row);
      const std::string line = at_line(cells_.line(row));
      if (own.size() != width_ || width_ > 2) {
        source_.fail(line + "expected a " + what_ + ", or a name and a " + what_);
      }
      if (own.back().empty()) source_.fail(line + "expected a " + what_ + ", got nothing");
      if (width_ == 2 && !by_name.emplace(own.front(), all.texts.size()).second) {
        source_.fail(line + "a second " + what_ + " of " + quoted_name(own.front()));
      }
      all.texts.emplace_back(own.back());
      all.lines.push_back(cells_.line(row));
    }
    const auto got = std::ssize(all.texts);
    if (joins()) return joined(all, by_name);
    if (got != count_) fail_count(got);
    return all;
  }

 private:
  bool joins() const { return width_ == 2 && !observations_.names.empty(); }

  io::TextReading reading() const {
    io::TextReading reading{.text = true,
                            .header = first_ == 1,
                            .index = width_ == 2,
                            .delimiter = cells_.delimiter(),
                            .decisions = {}};
    reading.decisions.push_back(
        {first_ == 1 ? "first row taken as names" : "first row taken as data"});
    reading.decisions.push_back({joins() ? "joined with the rows of the table by name"
                                         : "in the order of the table's rows"});
    return reading;
  }

  [[noreturn]] void fail_count(int64_t got) const {
    source_.fail("expected " + std::to_string(count_) + " " + what_ +
                 "s, one per row of the table, got " + std::to_string(got) +
                 (first_ == 1 ? " below the first line, which has names" : ""));
  }

  RowTexts joined(const RowTexts& all,
                  const std::unordered_map<std::string_view, size_t>& by_name) const {
    RowTexts result;
    result.reading = all.reading;
    for (const std::string& name : observations_.names) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) source_.fail("no " + what_ + " of row " + quoted_name(name));
      result.texts.push_back(all.texts[found->second]);
      result.lines.push_back(all.lines[found->second]);
    }
    return result;
  }

  const io::Source& source_;
  const Observations& observations_;
  const std::string& what_;
  const io::Cells cells_;
  const int64_t count_;
  int64_t first_ = 0;
  size_t width_ = 0;
};

}  // namespace

RowTexts read_row_texts(const io::Source& source, const Observations& observations,
                        const std::string& what, bool numbers) {
  return RowReader(source, observations, what, numbers).read();
}

RowNumbers read_row_numbers(const std::string& path, const Observations& observations) {
  const io::FileBytes file(path);
  const io::Source source{path, file.bytes()};
  const int64_t count = observations.values.size(0);
  if (source.starts_with(io::kNpyMagic) || source.starts_with(io::kZipMagic)) {
    const io::Table table = io::parse_table(source, {.allow_missing = false});
    if (table.width != 1 || table.rows != count) {
      source.fail("expected " + std::to_string(count) + " numbers, one per row of the table, got " +
                  std::to_string(table.rows) + " x " + std::to_string(table.width));
    }
    return {at::tensor(table.values, at::kDouble), {}};
  }
  const RowTexts texts = read_row_texts(source, observations, "number", /*numbers=*/true);
  std::vector<double> numbers;
  for (size_t row = 0; row < texts.texts.size(); ++row) {
    const auto number = io::parse_number(texts.texts[row]);
    if (!number) {
      source.fail(at_line(texts.lines[row]) + "expected a number, got " +
                  quoted_name(texts.texts[row]));
    }
    numbers.push_back(*number);
  }
  return {at::tensor(numbers, at::kDouble), texts.reading};
}

}  // namespace nsimplex::data

// Reads groups, interventions, kinds and words of a table for `causal fit`.

#include "cli/causal_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "causal/option_names.h"
#include "cli/causal_table.h"
#include "cli/text_flags.h"
#include "io/text.h"
#include "support/error.h"
#include "support/printable.h"

namespace nsimplex::cli {
namespace {

constexpr const char* kGroups = "--groups";
constexpr const char* kTargets = "--targets";
constexpr const char* kBlocks = "--blocks";
constexpr const char* kKind = "--kind";

bool holds_categories(ColumnKind kind) {
  return kind == ColumnKind::binary || kind == ColumnKind::category;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// The different words in ascending order; none if all cells are numbers or empty.
std::vector<std::string> words_in(const std::vector<std::string>& cells) {
  std::set<std::string> words;
  bool numeric = true;
  for (const std::string& cell : cells) {
    if (cell.empty()) continue;
    words.insert(cell);
    numeric = numeric && io::parse_number(cell).has_value();
  }
  if (numeric) return {};
  return {words.begin(), words.end()};
}

// The columns of a table without some of them.
void take_out(io::Table& table, const std::set<int64_t>& columns) {
  std::vector<double> values;
  for (int64_t row = 0; row < table.rows; ++row) {
    for (int64_t column = 0; column < table.width; ++column) {
      if (!columns.contains(column)) values.push_back(table.at(row, column));
    }
  }
  std::vector<std::string> names;
  std::map<int64_t, std::vector<std::string>> texts;
  int64_t kept = 0;
  for (int64_t column = 0; column < table.width; ++column) {
    if (columns.contains(column)) continue;
    if (!table.columns.empty()) names.push_back(table.columns[static_cast<size_t>(column)]);
    if (table.texts.contains(column)) texts[kept] = std::move(table.texts[column]);
    ++kept;
  }
  table.values = std::move(values);
  table.columns = std::move(names);
  table.texts = std::move(texts);
  table.width = kept;
}

}  // namespace

void add_row_options(CLI::App& command, CausalRowFlags& flags) {
  const std::string group = "Rows and kinds of columns";
  command
      .add_option("--groups", flags.groups,
                  "Column with the group or batch of each row, numbers or words; offsets of groups "
                  "do not count as effects")
      ->type_name("COLUMN")
      ->group(group);
  command
      .add_option("--targets", flags.targets,
                  "Column with the names of the columns that were set from outside in each row, "
                  "between semicolons; empty: none")
      ->type_name("COLUMN")
      ->group(group);
  command
      .add_flag("--soft", flags.soft,
                "Interventions keep the causes of a column and change its intercept and noise")
      ->group(group);
  command
      .add_option("--kind", flags.kinds,
                  "How a column is regressed: continuous, binary, count or category; binary and "
                  "category columns may hold words")
      ->type_name("COLUMN=KIND")
      ->group(group);
}

CausalRowReader::CausalRowReader(const CausalRowFlags& flags) : flags_(flags) {
  for (const std::string& text : flags.kinds) {
    const size_t at = text.rfind('=');
    if (at == std::string::npos) {
      throw InputError(fmt::format("{}: expected COLUMN=KIND, got {}", kKind, quoted_name(text)));
    }
    asked_.emplace_back(unquoted(text.substr(0, at)),
                        parse_name<ColumnKind>(kKind, text.substr(at + 1)));
  }
}

namespace {

// The length that --blocks gives; 0 if it is nothing or the name of a column.
int64_t length_of_blocks(const std::string& blocks, const std::vector<std::string>& names) {
  if (blocks.empty() || std::ranges::find(names, blocks) != names.end()) return 0;
  const double length = io::parse_number(blocks).value_or(0);
  return length >= 1 && length == std::floor(length) && length < 1e9 ? static_cast<int64_t>(length)
                                                                     : 0;
}

}  // namespace

std::vector<bool> CausalRowReader::texts(const std::vector<std::string>& names, int64_t width) {
  const std::vector<std::string> known = names.empty() ? column_names(width) : names;
  std::vector<bool> result(static_cast<size_t>(width), false);
  const auto place = [&](const char* option, const std::string& column) -> int64_t {
    if (column.empty()) return -1;
    const int64_t at = find_column(option, column, known);
    result[static_cast<size_t>(at)] = true;
    return at;
  };
  groups_at_ = place(kGroups, flags_.groups);
  targets_at_ = place(kTargets, flags_.targets);
  block_rows_ = length_of_blocks(flags_.blocks, known);
  blocks_at_ = block_rows_ > 0 ? -1 : place(kBlocks, flags_.blocks);
  const auto differ = [](int64_t one, const char* option, int64_t other, const char* than,
                         const std::string& name) {
    if (one < 0 || one != other) return;
    throw InputError(fmt::format("{}: expected another column than {}, got {} for both", option,
                                 than, quoted_name(name)));
  };
  differ(groups_at_, kTargets, targets_at_, kGroups, flags_.groups);
  differ(targets_at_, kBlocks, blocks_at_, kTargets, flags_.targets);
  kinds_.assign(static_cast<size_t>(width), ColumnKind::continuous);
  std::set<int64_t> given;
  for (const auto& [column, kind] : asked_) {
    const int64_t at = find_column(kKind, column, known);
    const bool beside = at == groups_at_ || at == targets_at_ || at == blocks_at_;
    if (beside || !given.insert(at).second) {
      throw InputError(fmt::format("{}: expected {}, got {}{}", kKind,
                                   beside ? "a column of the graph" : "each column once",
                                   quoted_name(column), beside ? "" : " twice"));
    }
    kinds_[static_cast<size_t>(at)] = kind;
    if (holds_categories(kind)) result[static_cast<size_t>(at)] = true;
  }
  return result;
}

void CausalRowReader::take(io::Table& table) {
  std::set<int64_t> beside;
  const auto cells = [&](int64_t at) -> std::vector<std::string> {
    if (at < 0) return {};
    beside.insert(at);
    return table.texts.at(at);
  };
  groups_ = cells(groups_at_);
  targets_ = cells(targets_at_);
  blocks_ = cells(blocks_at_);
  for (auto at = beside.rbegin(); at != beside.rend(); ++at) kinds_.erase(kinds_.begin() + *at);
  if (!beside.empty()) take_out(table, beside);
  for (const auto& [column, texts] : table.texts) {
    std::vector<std::string> words = words_in(texts);
    if (words.empty()) continue;
    for (int64_t row = 0; row < table.rows; ++row) {
      const std::string& cell = texts[static_cast<size_t>(row)];
      table.values[static_cast<size_t>(row * table.width + column)] =
          cell.empty() ? std::nan("")
                       : static_cast<double>(std::ranges::lower_bound(words, cell) - words.begin());
    }
    words_[column] = std::move(words);
  }
}

void CausalRowReader::check_means(const io::Table& table) const {
  for (int64_t column = 0; column < table.width; ++column) {
    const ColumnKind kind = kinds_[static_cast<size_t>(column)];
    if (kind == ColumnKind::continuous) continue;
    for (int64_t row = 0; row < table.rows; ++row) {
      if (!std::isnan(table.at(row, column))) continue;
      const std::string name = table.columns.empty()
                                   ? fmt::format("x{}", column)
                                   : quoted_name(table.columns[static_cast<size_t>(column)]);
      throw InputError(
          fmt::format("--missing: expected refuse or rows for column {} of kind {}, which has no "
                      "mean, got means",
                      name, name_of(kind)));
    }
  }
}

namespace {

// Groups or blocks as numbers in the order of their first rows.
std::vector<int64_t> numbers_of(const char* option, const std::vector<std::string>& cells,
                                const std::vector<int64_t>& rows) {
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> groups;
  for (const int64_t row : rows) {
    const std::string& cell = cells[static_cast<size_t>(row)];
    if (cell.empty()) {
      throw InputError(fmt::format("{}: expected a {} in row {}, got nothing", option,
                                   option == kGroups ? "group" : "block", row + 1));
    }
    groups.push_back(numbers.emplace(cell, std::ssize(numbers)).first->second);
  }
  return groups;
}

// The columns that one cell names. Columns that are not kept do not count.
std::vector<int64_t> targets_in(const std::string& cell, int64_t row,
                                const std::vector<std::string>& names,
                                const std::vector<std::string>& all_names) {
  std::set<int64_t> columns;
  const auto add = [&](int64_t column, const std::string& name) {
    if (columns.insert(column).second) return;
    throw InputError(fmt::format("{}: expected each column once, got {} twice in row {}", kTargets,
                                 quoted_name(name), row + 1));
  };
  for (const std::string& part : split_names(cell, ';')) {
    const std::string name = unquoted(trimmed(part));
    if (name.empty()) continue;
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) {
      add(found - names.begin(), name);
      continue;
    }
    if (std::ranges::find(all_names, name) != all_names.end()) continue;
    const double number = io::parse_number(name).value_or(std::nan(""));
    if (number == -1) continue;
    if (!(number >= 0 && number < static_cast<double>(names.size())) ||
        number != std::floor(number)) {
      throw InputError(
          fmt::format("{}: expected names of columns, or numbers from 0 to {}, got {} in row {}",
                      kTargets, names.size() - 1, quoted_name(name), row + 1));
    }
    add(static_cast<int64_t>(number), name);
  }
  return {columns.begin(), columns.end()};
}

}  // namespace

CausalRows CausalRowReader::of(const causal::UsableTable& kept,
                               const std::vector<std::string>& names,
                               const std::vector<std::string>& all_names) const {
  CausalRows result;
  if (groups_at_ >= 0) result.groups = numbers_of(kGroups, groups_, kept.rows);
  if (blocks_at_ >= 0) result.blocks = numbers_of(kBlocks, blocks_, kept.rows);
  for (const int64_t row : kept.rows) {
    if (block_rows_ > 0) result.blocks.push_back(row / block_rows_);
  }
  bool any = false;
  for (const int64_t row : kept.rows) {
    if (targets_at_ < 0) break;
    result.targets.push_back(targets_in(targets_[static_cast<size_t>(row)], row, names, all_names));
    any = any || !result.targets.back().empty();
  }
  if (!any) result.targets.clear();
  bool plain = true;
  for (size_t at = 0; at < kept.columns.size(); ++at) {
    const int64_t column = kept.columns[at];
    result.kinds.push_back(kinds_[static_cast<size_t>(column)]);
    plain = plain && result.kinds.back() == ColumnKind::continuous;
    const auto words = words_.find(column);
    if (words != words_.end()) result.words[static_cast<int64_t>(at)] = words->second;
  }
  if (plain) result.kinds.clear();
  return result;
}

void set_rows(CausalFitOptions& options, const CausalRows& rows, bool soft) {
  options.groups = rows.groups;
  options.targets = rows.targets;
  options.soft = soft;
  options.kinds = rows.kinds;
}

namespace {

int64_t count_of(const std::vector<int64_t>& groups) {
  return groups.empty() ? 0 : *std::ranges::max_element(groups) + 1;
}

// In how many rows each column was intervened on.
std::vector<int64_t> rows_with(const CausalRows& rows, size_t columns) {
  std::vector<int64_t> counts(columns, 0);
  for (const std::vector<int64_t>& own : rows.targets) {
    for (const int64_t column : own) ++counts[static_cast<size_t>(column)];
  }
  return counts;
}

}  // namespace

Json to_json(const CausalRows& rows, const std::vector<std::string>& names) {
  Json line{{"groups", nullptr}, {"targets", nullptr}, {"kinds", nullptr}, {"words", nullptr}};
  if (!rows.groups.empty()) line["groups"] = count_of(rows.groups);
  const std::vector<int64_t> counts = rows_with(rows, names.size());
  for (size_t at = 0; at < names.size(); ++at) {
    if (counts[at] > 0) line["targets"][names[at]] = counts[at];
    if (!rows.kinds.empty()) line["kinds"][names[at]] = name_of(rows.kinds[at]);
  }
  for (const auto& [column, words] : rows.words) {
    line["words"][names[static_cast<size_t>(column)]] = words;
  }
  return line;
}

std::string rows_text(const CausalRows& rows, bool soft, const std::vector<std::string>& names) {
  std::string text;
  if (!rows.groups.empty()) text += fmt::format("{} groups of rows\n", count_of(rows.groups));
  const std::vector<int64_t> counts = rows_with(rows, names.size());
  std::vector<std::string> parts;
  for (size_t at = 0; at < names.size(); ++at) {
    if (counts[at] > 0) parts.push_back(fmt::format("{} ({})", printable(names[at]), counts[at]));
  }
  if (!parts.empty()) {
    text += fmt::format("columns with {}interventions (rows): {}\n", soft ? "soft " : "",
                        fmt::join(parts, ", "));
  }
  for (const auto& [column, words] : rows.words) {
    std::vector<std::string> shown;
    for (const std::string& word : words) shown.push_back(printable(word));
    text += fmt::format("{}: words {} count as 0 to {}\n",
                        printable(names[static_cast<size_t>(column)]), fmt::join(shown, ", "),
                        words.size() - 1);
  }
  return text;
}

std::string command_line_message(const std::string& message) {
  // Arguments whose options have other names, and the table, which is no option.
  static const std::map<std::string, std::string> kOptions{
#define NSIMPLEX_PAIR(type, name, initial, flag, ...) {#name, flag},
      NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_PAIR)
#undef NSIMPLEX_PAIR
          {"kinds", "--kind"},
      {"forbidden", "--forbid"},
      {"required", "--require"},
      {"paths", "--require-path"},
      {"replicates", "--confidence"},
      {"table", "table"}};
  const size_t end = message.find(':');
  if (end == message.npos) return message;
  const size_t function = message.starts_with("[") ? message.find("] ") : message.npos;
  const size_t begin = function < end ? function + 2 : 0;
  const size_t place = std::min(message.find('[', begin), end);  // of an entry: required[0]
  const std::string argument = message.substr(begin, place - begin);
  const auto known = kOptions.find(argument);
  return (known == kOptions.end() ? "--" + argument : known->second) + message.substr(place);
}

}  // namespace nsimplex::cli

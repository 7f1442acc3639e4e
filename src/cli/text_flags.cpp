#include "cli/text_flags.h"

#include <fmt/format.h>

#include <cstdio>

#include "support/error.h"
#include "support/log.h"
#include "support/printable.h"

namespace nsimplex::cli {

void add_text_options(CLI::App& command, TextFlags& flags, bool table) {
  const std::string group = "Text files";
  const auto add = option_adder(command, group);
  std::vector<std::string> delimiters = names_of<io::Delimiter>();
  delimiters.insert(delimiters.begin(), "auto");
  add("--header", flags.header, "Whether the first row has names: auto, yes or no")
      ->check(CLI::IsMember(names_of<io::HeaderLine>()));
  add("--index", flags.index, "Whether the first column has row names: auto, yes or no")
      ->check(CLI::IsMember(names_of<io::IndexColumn>()));
  add("--delimiter", flags.delimiter,
      "Separator of cells: auto, comma, tab, semicolon, pipe or space")
      ->check(CLI::IsMember(delimiters));
  command
      .add_option("--comment", flags.comment,
                  "Skip lines that begin with this character; '' skips none; default: # above the "
                  "first row")
      ->type_name("CHAR")
      ->check([](const std::string& text) {
        return text.size() > 1 ? "expected one character, got " + quoted_name(text) : "";
      })
      ->group(group);
  if (!table) return;
  const auto add_names = [&](const char* name, std::vector<std::string>& names, const char* text) {
    command.add_option(name, names, text)->type_name("NAMES")->group(group);
  };
  add_names("--use-columns", flags.use, "Read only these columns: names between commas");
  add_names("--leave-out", flags.leave_out, "Skip these columns: names between commas");
  add_names("--na-values", flags.missing_words, "Further words for missing values, between commas");
}

namespace {

std::vector<std::string> all_names(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    for (const std::string& name : split_names(list)) names.push_back(unquoted(name));
  }
  return names;
}

}  // namespace

io::TextOptions text_options(const TextFlags& flags) {
  io::TextOptions options{.header = parse_name<io::HeaderLine>("--header", flags.header),
                          .index = parse_name<io::IndexColumn>("--index", flags.index),
                          .comment = flags.comment,
                          .missing_words = all_names(flags.missing_words),
                          .use = all_names(flags.use),
                          .leave_out = all_names(flags.leave_out)};
  options.delimiter = find_name<io::Delimiter>(flags.delimiter).value_or(io::Delimiter::detect);
  return options;
}

namespace {

std::vector<std::string>& held_lines() {
  static std::vector<std::string> lines;
  return lines;
}

}  // namespace

void show_readings() {
  for (const std::string& line : held_lines()) log_line(line);
  held_lines().clear();
}

void say_reading(const std::string& path, const std::string& size, const io::TextReading& reading) {
  if (!reading.text) return;
  const std::string decisions = io::command_line_notice(reading);
  held_lines().push_back(
      fmt::format("{}: read {}{}{}", path, size, decisions.empty() ? "" : "; ", decisions));
}

Json to_json(const io::TextReading& reading) {
  if (!reading.text) return nullptr;
  return {{"header", reading.header},
          {"index", reading.index},
          {"delimiter", name_of(reading.delimiter)},
          {"decisions", io::command_line_notice(reading)}};
}

std::string size_of_table(int64_t rows, int64_t columns) {
  return fmt::format("{} row{} of {} column{}", rows, rows == 1 ? "" : "s", columns,
                     columns == 1 ? "" : "s");
}

std::vector<std::string> split_names(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  bool in_quotes = false;
  for (const char c : text) {
    if (c == '"') in_quotes = !in_quotes;
    if (c == separator && !in_quotes) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
  std::string name;
  const std::string_view within = text.substr(1, text.size() - 2);
  for (size_t at = 0; at < within.size(); ++at) {
    name += within[at];
    if (within.substr(at).starts_with("\"\"")) ++at;
  }
  return name;
}

}  // namespace nsimplex::cli

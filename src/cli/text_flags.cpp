// The options of how texts of rows and columns are read, and the refusal of those without an
// effect.

#include "cli/text_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "io/input_file.h"
#include "io/npz.h"
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
      ->check(one_of(names_of<io::HeaderLine>()));
  add("--index", flags.index, "Whether the first column has row names: auto, yes or no")
      ->check(one_of(names_of<io::IndexColumn>()));
  add("--delimiter", flags.delimiter,
      "Separator of cells: auto, comma, tab, semicolon, pipe or space")
      ->check(one_of(delimiters));
  command
      .add_option("--comment", flags.comment,
                  "Skip lines that begin with this character; '' skips none; default: # above the "
                  "first row")
      ->type_name("CHAR")
      ->check(expected("one character", [](const std::string& text) { return text.size() <= 1; }))
      ->group(group);
  if (!table) return;
  const auto add_names = [&](const char* name, std::vector<std::string>& names, const char* text) {
    command.add_option(name, names, text)->type_name("NAME,...")->group(group);
  };
  add_names("--use-columns", flags.use, "Read only these columns");
  add_names("--leave-out", flags.leave_out, "Skip these columns");
  add_names("--na-values", flags.missing_words, "Further words for missing values");
  add("--decimal", flags.decimal, "The character before decimals: . or ,")
      ->type_name("CHAR")
      ->check(expected("a point or a comma",
                       [](const std::string& text) { return text == "." || text == ","; }));
  add("--thousands", flags.thousands,
      "The character between groups of three digits: , . ' _ or a blank; default: none")
      ->type_name("CHAR")
      ->check(expected(
          "a comma, a point, an apostrophe, a line _ or a blank", [](const std::string& text) {
            return text.empty() || (text.size() == 1 && std::string_view(",.'_ ").find(text[0]) !=
                                                            std::string_view::npos);
          }));
  add("--encoding", flags.encoding,
      "Encoding of a text: auto (UTF-8, or UTF-16 with its mark), latin-1 or windows-1252");
}

namespace {

std::vector<std::string> all_names(const char* option, const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    for (const std::string& part : split_names(list)) {
      std::string name = unquoted(part);
      if (std::ranges::find(names, name) != names.end()) {
        throw InputError(
            fmt::format("{}: expected different names, got {} twice", option, quoted_name(name)));
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

io::TextOptions text_options(const TextFlags& flags) {
  if (flags.thousands == flags.decimal) {
    throw InputError(fmt::format(
        "--thousands: expected another character than that of --decimal, got {}", flags.thousands));
  }
  io::TextOptions options{.header = parse_name<io::HeaderLine>("--header", flags.header),
                          .index = parse_name<io::IndexColumn>("--index", flags.index),
                          .comment = flags.comment,
                          .numbers = {.decimal = flags.decimal.front()},
                          .encoding = flags.encoding,
                          .missing_words = all_names("--na-values", flags.missing_words),
                          .use = all_names("--use-columns", flags.use),
                          .leave_out = all_names("--leave-out", flags.leave_out)};
  options.delimiter = find_name<io::Delimiter>(flags.delimiter).value_or(io::Delimiter::detect);
  if (!flags.thousands.empty()) options.numbers.thousands = flags.thousands.front();
  return options;
}

namespace {

void refuse_unused(const TextFlags& flags, const io::TextReading& reading, const std::string& path,
                   const std::string& key) {
  const auto refuse = [&](bool given, const char* option, const char* expected) {
    if (given) throw InputError(fmt::format("{}: expected {}, got {}", option, expected, path));
  };
  const auto is_archive = [&] {
    const io::FileBytes file(path);
    return io::Source{path, file.bytes()}.starts_with(io::kZipMagic);
  };
  refuse(!key.empty() && !is_archive(), "--key", "an npz");
  if (reading.text) return;
  const TextFlags usual;
  constexpr char kText[] = "a text of rows and columns";
  refuse(flags.header != usual.header, "--header", kText);
  refuse(flags.index != usual.index, "--index", kText);
  refuse(flags.delimiter != usual.delimiter, "--delimiter", kText);
  refuse(flags.comment.has_value(), "--comment", kText);
  refuse(flags.decimal != usual.decimal, "--decimal", kText);
  refuse(!flags.thousands.empty(), "--thousands", kText);
  refuse(flags.encoding != usual.encoding, "--encoding", kText);
  refuse(!flags.use.empty(), "--use-columns", kText);
  refuse(!flags.leave_out.empty(), "--leave-out", kText);
  refuse(!flags.missing_words.empty(), "--na-values", kText);
}

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

void say_reading(const TextFlags& flags, const std::string& path, const std::string& size,
                 const io::TextReading& reading, const std::string& key) {
  refuse_unused(flags, reading, path, key);
  say_reading(path, size, reading);
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

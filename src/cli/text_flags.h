#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "io/text_grid.h"

/// How commands read texts of rows and columns, and what they say of it.
namespace nsimplex::cli {

struct TextFlags {
  std::string header = "auto", index = "auto", delimiter = "auto";
  std::optional<std::string> comment;
  std::vector<std::string> missing_words, use, leave_out;
};

/// Adds --header, --index, --delimiter and --comment; for tables --na-values, --use-columns and
/// --leave-out, too.
void add_text_options(CLI::App& command, TextFlags& flags, bool table);

io::TextOptions text_options(const TextFlags& flags);

/// What was decided to read a text, as one line of standard error: "PATH: read 3 rows of 2 columns;
/// first row taken as names (--header no to read it as data)". Nothing of arrays. The line is held
/// back until show_readings(), so that input which cannot be used gets its error and nothing else.
void say_reading(const std::string& path, const std::string& size, const io::TextReading& reading);

/// Writes the lines that were held back; the log of a run does when it begins.
void show_readings();

/// The same for machines: header, index, delimiter and, in words, the decisions; null of arrays.
Json to_json(const io::TextReading& reading);

/// "3 rows of 2 columns".
std::string size_of_table(int64_t rows, int64_t columns);

/// The names of a list, which commas part; a name in double quotes may hold commas.
std::vector<std::string> split_names(const std::string& text, char separator = ',');

/// A name without the double quotes around it, and two of them within it as one.
std::string unquoted(std::string_view text);

}  // namespace nsimplex::cli

// Declares the options of how texts of rows and columns are read.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "io/text_grid.h"

/// How commands read texts of rows and columns, and how they report it.
namespace nsimplex::cli {

struct TextFlags {
  std::string header = "auto", index = "auto", delimiter = "auto";
  std::string decimal = ".", thousands;
  io::Encoding encoding = io::Encoding::detect;
  std::optional<std::string> comment;
  std::vector<std::string> missing_words, use, leave_out;
};

/// Adds --header, --index, --delimiter and --comment; for tables also --na-values, --decimal,
/// --thousands, --encoding, --use-columns and --leave-out.
void add_text_options(CLI::App& command, TextFlags& flags, bool table);

/// Throws InputError for a list that names something twice.
io::TextOptions text_options(const TextFlags& flags);

/// Reports the decisions made while reading a text as one line on standard error: "PATH: read 3
/// rows of 2 columns; first row taken as names (--header no to read it as data)". Arrays have no
/// such line. The line is held back until show_readings(), so that an unusable input prints only
/// its error.
void say_reading(const std::string& path, const std::string& size, const io::TextReading& reading);

/// The same for an input with options of its own. Throws InputError for the first one that had no
/// effect: those of texts on an array, and --key on anything but an npz.
void say_reading(const TextFlags& flags, const std::string& path, const std::string& size,
                 const io::TextReading& reading, const std::string& key = "");

/// Writes the lines that were held back. The log of a run calls it at its start.
void show_readings();

/// The same as JSON: header, index, delimiter and the decisions in words; null for arrays.
Json to_json(const io::TextReading& reading);

/// "3 rows of 2 columns".
std::string size_of_table(int64_t rows, int64_t columns);

/// The names of a list separated by commas; a name in double quotes may contain commas.
std::vector<std::string> split_names(const std::string& text, char separator = ',');

/// A name without its surrounding double quotes; doubled ones within it become single.
std::string unquoted(std::string_view text);

}  // namespace nsimplex::cli

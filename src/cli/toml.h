// Declares the part of TOML that config files use.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nsimplex::cli {

/// One `name = value` of a TOML file. Values are texts: the contents of quotation marks, or a
/// number or word unchanged.
struct TomlEntry {
  std::string name;
  std::vector<std::string> values;  ///< one, or the members of a list
  bool list = false;
  int64_t line = 0;  ///< counted from 1
};

/// Parses a TOML file without sections, dates and tables, which options do not need: one entry per
/// line, lists in brackets, strings of all four kinds, comments. A byte order mark is skipped, and
/// words without quotation marks are strings. Throws InputError "line N: WHAT" otherwise.
std::vector<TomlEntry> parse_toml(std::string_view text);

/// A value that parse_toml and every reader of TOML read as `text`: unchanged if it is a number, a
/// boolean or infinity, otherwise in quotation marks. Bytes that are not UTF-8 stay unchanged.
std::string toml_value(std::string_view text);

}  // namespace nsimplex::cli

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nsimplex::cli {

/// One `name = value` of a TOML file. Values are texts: what quotation marks hold, or a number or
/// word as it stands there.
struct TomlEntry {
  std::string name;
  std::vector<std::string> values;  ///< one, or the members of a list
  bool list = false;
  int64_t line = 0;  ///< counted from 1
};

/// The entries of a TOML file without sections, dates and tables, which options do not need: one
/// line each, lists in brackets, strings of all four kinds, comments. A byte order mark is skipped;
/// words without quotation marks are strings. Throws InputError "line N: WHAT" otherwise.
std::vector<TomlEntry> parse_toml(std::string_view text);

/// A value that parse_toml and every reader of TOML take for `text`: itself where it is a number, a
/// truth or infinity, else in quotation marks. Bytes that are not UTF-8 stay as they are.
std::string toml_value(std::string_view text);

}  // namespace nsimplex::cli

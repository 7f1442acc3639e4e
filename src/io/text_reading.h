#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/cells.h"

namespace nsimplex::io {

/// What a reader decided about a text, to be said and never silent.
struct TextReading {
  /// One decision, and the option that says otherwise: `option` "header" and `value` false means
  /// --header no at the command line and header=False in Python.
  struct Decision {
    std::string what, option = {};
    bool value = false;
    std::string otherwise = {};  ///< what the option does: "to read it as data"
    bool guessed = false;        ///< by the values alone, so that it may be wrong
  };
  bool text = false;  ///< false: an array, nothing was decided
  bool header = false, index = false;
  Delimiter delimiter = Delimiter::detect;
  std::vector<Decision> decisions;
};

/// "first row taken as names (--header no to read it as data); ..": all decisions as the command
/// line says them, or those that were guessed, as Python says them; "" where there are none.
std::string command_line_notice(const TextReading& reading);
std::string python_notice(const TextReading& reading);

/// "comma", "tab", "semicolon", "pipe" or "space", and back; nothing for another name.
std::string delimiter_name(Delimiter delimiter);
std::optional<Delimiter> parse_delimiter(std::string_view name);

}  // namespace nsimplex::io

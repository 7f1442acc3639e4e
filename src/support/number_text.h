// Writes a number as printf() does.

#pragma once

#include <cstdio>
#include <string>

namespace nsimplex {

/// `format` has one conversion of a double, such as "%.4g", and the text at most 63 characters.
inline std::string number_text(const char* format, double number) {
  char text[64];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

}  // namespace nsimplex

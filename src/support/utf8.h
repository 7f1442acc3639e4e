#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nsimplex {

/// How many bytes the character at the front of a text has; 0 where it is no valid UTF-8, as a half
/// of a surrogate pair and an overlong form are not.
size_t utf8_length(std::string_view text);

/// Whether all of a text is valid UTF-8.
bool is_utf8(std::string_view text);

/// The character of utf8_length() bytes, which are not 0, at the front of a text.
uint32_t utf8_character(std::string_view text);

/// Appends a character, which is no surrogate, to UTF-8.
void append_utf8(std::string& text, uint32_t character);

}  // namespace nsimplex

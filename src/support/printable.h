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

/// A text as a terminal may show it, on one line: what would act on the terminal or on the line is
/// escaped, and valid UTF-8 stays as it is otherwise. Control characters (C0, DEL, C1), bytes that
/// are no UTF-8, the ends of lines and paragraphs, and the marks that turn the direction of writing
/// become \n, \x1b or \u202e.
///
/// Every message with a text from outside goes through this: those of InputError by themselves,
/// and those of the log and of the command line, where they are written. Applied twice it changes
/// nothing more.
std::string printable(std::string_view text);

/// A name or cell from a file as an error quotes it: printable, in quotes, and shortened.
std::string quoted_name(std::string_view text);

}  // namespace nsimplex

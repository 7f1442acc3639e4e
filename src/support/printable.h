// Declares the escaping of text for a terminal, and the reading of UTF-8.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nsimplex {

/// The number of bytes of the character at the front of a text; 0 if it is not valid UTF-8, such as
/// half a surrogate pair or an overlong form.
size_t utf8_length(std::string_view text);

/// Whether the whole text is valid UTF-8.
bool is_utf8(std::string_view text);

/// The character at the front of a text, which has utf8_length() > 0 bytes.
uint32_t utf8_character(std::string_view text);

/// Appends a character, which must not be a surrogate, as UTF-8.
void append_utf8(std::string& text, uint32_t character);

/// Makes a text safe for one line of a terminal. It escapes characters that would act on the
/// terminal or the line and leaves other valid UTF-8 unchanged. Control characters (C0, DEL, C1),
/// bytes that are not UTF-8, the ends of lines and paragraphs, and the marks that change the
/// direction of writing become \n, \x1b or \u202e.
///
/// Every message with text from outside uses this function: InputError calls it, and the log and
/// the command line call it when they write. Applying it twice changes nothing more.
std::string printable(std::string_view text);

/// A name or cell from a file as errors quote it: printable, in quotes, and shortened.
std::string quoted_name(std::string_view text);

}  // namespace nsimplex

#pragma once

#include <string>
#include <string_view>

namespace nsimplex {

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

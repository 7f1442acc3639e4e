// The error that reports a user's mistake.

#pragma once

#include <nsimplex/version.h>

#include <stdexcept>
#include <string>

namespace nsimplex {

/// An error in the user's input. The message is one line that names the argument or file, the
/// expectation and the value. Layers, models and readers of files throw it. Operators throw
/// c10::ValueError and c10::TypeError, like those of PyTorch. The command line prints the message
/// and exits with 2.
struct NSIMPLEX_API InputError : std::runtime_error {
  /// A message may contain names from files. Control characters, line ends, bytes that are not
  /// UTF-8 and marks that change the direction of writing are escaped, as in \x1b.
  explicit InputError(const std::string& message);
};

}  // namespace nsimplex

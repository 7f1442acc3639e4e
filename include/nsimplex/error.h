#pragma once

#include <nsimplex/version.h>

#include <stdexcept>
#include <string>

namespace nsimplex {

/// Input of a user that cannot be used: one line that names the argument or file, what was expected
/// and what came. Layers, models and readers of files throw it; operators throw c10::ValueError and
/// c10::TypeError, as PyTorch's do. The command line prints it and exits with 2.
struct NSIMPLEX_API InputError : std::runtime_error {
  /// Names in a message come from files, too: control characters, line ends, bytes that are no
  /// UTF-8 and marks that turn the direction of writing are escaped, as in \x1b.
  explicit InputError(const std::string& message);
};

}  // namespace nsimplex

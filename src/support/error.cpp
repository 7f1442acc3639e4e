// Escapes the message of an InputError, so that names from files cannot act on a terminal.

#include "support/error.h"

#include "support/printable.h"

namespace nsimplex {

InputError::InputError(const std::string& message) : std::runtime_error(printable(message)) {}

}  // namespace nsimplex

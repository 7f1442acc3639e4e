#include "support/error.h"

#include "support/printable.h"

namespace nsimplex {

InputError::InputError(const std::string& message) : std::runtime_error(printable(message)) {}

}  // namespace nsimplex

#pragma once

#include <stdexcept>

namespace nsimplex {

/// Input of a user that cannot be used: one line that names the argument or file, what was expected
/// and what came. The command line prints it and exits with 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace nsimplex

#pragma once

#include <c10/util/Exception.h>

#include "support/error.h"

namespace nsimplex {

/// Runs a call of plain code. Its InputError becomes the c10::ValueError "[function] WHY" of the
/// public functions.
template <class Call>
auto as_function(const char* function, Call&& call) {
  try {
    return call();
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, c10::str("[", function, "] ", error.what()));
  }
}

}  // namespace nsimplex

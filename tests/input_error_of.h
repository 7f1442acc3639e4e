#pragma once

#include <string>

#include "support/error.h"

namespace nsimplex::test {

/// What a call's InputError says.
template <class Call>
std::string input_error_of(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace nsimplex::test

#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace nsimplex {

/// What a call's c10::Error says.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

}  // namespace nsimplex

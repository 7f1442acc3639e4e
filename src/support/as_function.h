// Turns the errors of plain code into those of a public function, with its name in front.

#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>
#include <string>

#include "support/error.h"

namespace nsimplex {

/// std::bad_alloc with a message; Python raises it as MemoryError.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const char* function)
      : what_(c10::str("[", function, "] expected sizes that fit in memory, got larger ones")) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// Runs a call of plain code. Its InputError becomes the c10::ValueError "[function] WHY" of the
/// public functions, and an allocation that fails OutOfMemory.
template <class Call>
auto as_function(const char* function, Call&& call) {
  try {
    return call();
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, c10::str("[", function, "] ", error.what()));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(function);
  } catch (const std::length_error&) {
    throw OutOfMemory(function);
  }
}

}  // namespace nsimplex

// Finds the value of an operator's option that is given by name.

#pragma once

#include <c10/util/Exception.h>

#include "support/names.h"

namespace nsimplex {

/// The value of an operator's option that is a name. Throws c10::ValueError "[OPERATION] ARGUMENT:
/// expected one of a, b, got 'NAME'".
template <class Enum>
Enum named_option(const char* operation, const char* argument, std::string_view name,
                  const NameList& list = {}) {
  const std::optional<Enum> value = find_name<Enum>(name);
  TORCH_CHECK_VALUE(value, "[", operation, "] ", argument, ": ", expected_name<Enum>(name, list));
  return *value;
}

}  // namespace nsimplex

#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace nsimplex {

/// The registered operator of this name, to be called through the dispatcher.
template <class Function>
c10::TypedOperatorHandle<Function> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

}  // namespace nsimplex

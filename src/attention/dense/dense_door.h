#pragma once

#include <c10/core/SymBool.h>

#include "attention/dense/dense_arguments.h"

namespace nsimplex::dense {

/// The part of check(call) that looks at the options, given tensors and windows that fit.
void check_options(const Call& call);

/// A size that is known is compared; one that is not becomes an assertion of the traced graph.
inline bool holds(const c10::SymBool& condition) {
  return condition.expect_true(__FILE__, __LINE__);
}

}  // namespace nsimplex::dense

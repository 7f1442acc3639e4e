#pragma once

#include <c10/core/SymBool.h>

#include "attention/dense/dense_arguments.h"

namespace nsimplex::dense {

/// The part of check(call) that looks at the options, given tensors and windows that fit.
void check_options(const Call& call);

/// What every operator over key axes asks of its tensors: ranks, dtypes, devices and sizes that go
/// together. Messages start with the operation's name.
void check_tensors(const char* operation, const at::Tensor& query, at::TensorList keys,
                   at::TensorList values);

/// A tensor whose shape follows from others.
void expect_shape(const char* operation, const char* name, const at::Tensor& tensor,
                  c10::SymIntArrayRef sizes);

/// A size that is known is compared; one that is not becomes an assertion of the traced graph.
inline bool holds(const c10::SymBool& condition) {
  return condition.expect_true(__FILE__, __LINE__);
}

}  // namespace nsimplex::dense

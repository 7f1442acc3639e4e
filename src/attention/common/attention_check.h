#pragma once

#include <c10/core/SymBool.h>

#include "attention/common/attention_arguments.h"

namespace nsimplex::dense {

/// The part of check(call) that looks at the options, given tensors and windows that fit.
void check_options(const Call& call);

/// What every operator over key axes asks of its tensors: ranks, dtypes, devices and sizes that go
/// together. Messages start with the operation's name.
void check_tensors(const char* operation, const at::Tensor& query, at::TensorList keys,
                   at::TensorList values);

/// A scale that is given is a finite number.
void check_scale(const char* operation, const char* name, const std::optional<double>& scale);

/// A tensor whose shape follows from others.
void expect_shape(const char* operation, const char* name, const at::Tensor& tensor,
                  c10::SymIntArrayRef sizes);

/// Refuses an axis whose keys end at key_lengths and are seen `by` place, unless they are as many
/// as the queries or seen `everywhere`: queries align to the end of the axis, padding included, so
/// the keys before the padding would not be where the caller believes them. Asks sizes, never
/// lengths.
void check_places(const char* operation, const char* keys, std::optional<int64_t> axis,
                  const char* by, const c10::SymInt& queries, const c10::SymInt& length,
                  const c10::SymBool& everywhere);

/// A size that is known is compared; one that is not becomes an assertion of the traced graph.
inline bool holds(const c10::SymBool& condition) {
  return condition.expect_true(__FILE__, __LINE__);
}

}  // namespace nsimplex::dense

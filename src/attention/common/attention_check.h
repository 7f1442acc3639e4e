// Declares the checks that several operators over key axes share.

#pragma once

#include <c10/core/SymBool.h>

#include "attention/common/attention_arguments.h"

namespace nsimplex::dense {

/// The part of check(call) for the options. Tensors and windows must have been checked.
void check_options(const Call& call);

/// The checks of tensors of every operator over key axes: ranks, dtypes, devices and sizes.
/// Messages start with the name of the operation.
void check_tensors(const char* operation, const at::Tensor& query, at::TensorList keys,
                   at::TensorList values);

/// Rejects a scale that is given and not finite.
void check_scale(const char* operation, const char* name, const std::optional<double>& scale);

/// What is wrong with a soft cap of logits, for operators and layers, whose errors have different
/// types; empty if nothing is.
std::string softcap_fault(const std::optional<double>& softcap);

/// Rejects a tensor that does not have the shape which follows from others.
void expect_shape(const char* operation, const char* name, const at::Tensor& tensor,
                  c10::SymIntArrayRef sizes);

/// Rejects an axis with key_lengths whose keys are seen `by` place, unless there are as many keys
/// as queries or all are seen (`everywhere`). Queries align to the end of the axis including its
/// padding, so the keys before the padding would not be where the caller expects them. It reads
/// sizes only, never lengths.
void check_places(const char* operation, const char* keys, std::optional<int64_t> axis,
                  const char* by, const c10::SymInt& queries, const c10::SymInt& length,
                  const c10::SymBool& everywhere);

/// A known size is compared. An unknown size becomes an assertion of the traced graph.
inline bool holds(const c10::SymBool& condition) {
  return condition.expect_true(__FILE__, __LINE__);
}

}  // namespace nsimplex::dense

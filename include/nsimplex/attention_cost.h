#pragma once

#include <nsimplex/attention.h>

#include <cstdint>

namespace nsimplex {

/// Floating-point operations of a forward call: 2 (D + Dv) for every query, head and admissible
/// tuple: windows, key lengths and documents count, other masks change nothing. A backward call has
/// three times as many: six products a tuple instead of two. Exponentials and what is outside the
/// matrix products are not counted. O(B Tq N) time.
NSIMPLEX_API double attention_flops(const at::Tensor& query, at::TensorList keys,
                                    at::TensorList values, const AttentionOptions& options = {});

/// Bytes that the CPU kernel takes besides inputs and outputs.
struct AttentionWorkspace {
  int64_t forward_bytes = 0;
  int64_t backward_bytes = 0;
};

/// Workspace of a call and of its backward, at the present number of threads; zeros where the call
/// goes by the reference.
NSIMPLEX_API AttentionWorkspace attention_workspace(const at::Tensor& query, at::TensorList keys,
                                                    at::TensorList values,
                                                    const AttentionOptions& options = {});

}  // namespace nsimplex

#pragma once

#include <nsimplex/attention.h>

#include <cstdint>

namespace nsimplex {

/// Floating-point operations of a forward call: 2 (D + Dv) for every query, head and admissible
/// tuple, key lengths included. A backward call has three times as many: six products a tuple
/// instead of two. Masks, exponentials and what is outside the matrix products are not counted.
/// O(Tq N) time.
NSIMPLEX_API double attention_flops(const at::Tensor& query, at::TensorList keys,
                                    at::TensorList values, const AttentionOptions& options = {});

}  // namespace nsimplex

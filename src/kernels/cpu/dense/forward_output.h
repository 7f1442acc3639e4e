#pragma once

#include "kernels/common/softmax_state.h"
#include "kernels/cpu/dense/geometry.h"

namespace nsimplex::kernels::dense {

/// out = s2 total / sum and lse of one item; 0 and minus infinity for a query without tuples.
void write_item(const DenseForward<float>& problem, const Geometry& geometry, int64_t batch,
                int64_t head, int64_t item, const SoftmaxState& state, const float* total);

/// Merges the `count` parts that one head's splits left, in their order, into the first, and writes
/// the items.
void merge_parts(const DenseForward<float>& problem, const Geometry& geometry, const Splits& splits,
                 int64_t count, int64_t batch, int64_t head, float* parts);

}  // namespace nsimplex::kernels::dense

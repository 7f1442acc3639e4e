#pragma once

#include <nsimplex/attention.h>

namespace nsimplex {

/// Attention over a set of tuples from the results over its parts.
///
///     lse = log sum_p exp(lse_p)
///     out = sum_p exp(lse_p - lse) out_p
///
/// Exact where no tuple belongs to two parts. For N >= 2 the parts are of tuples: cutting one key
/// axis into blocks makes such parts, cutting two axes into pairs of blocks needs every pair. This
/// is the base of split keys, decoding and parallelism over the context.
///
/// Shapes: outs P >= 1 of [.., Dv], lses P of [..], as attention() returns them. A row that has no
/// tuple in a part (lse = -inf) adds nothing; one that has none in any part has out = 0 and lse =
/// -inf. Differentiable in outs and lses, any number of times, forward and backward. `out` has the
/// dtype and memory order of outs[0]; lses are float32 or float64, the same for all, and the sums
/// are made in their dtype.
///
/// Normalisers softmax and relu merge by this formula. With a sink only one part may have it.
/// Results of sigmoid simply add, without this function.
///
/// Complexity: P (Dv + 2) operations a row, memory bound.
///
/// Errors: c10::ValueError or c10::TypeError that names the part.
NSIMPLEX_API AttentionOutput merge_attention(at::TensorList outs, at::TensorList lses);

}  // namespace nsimplex

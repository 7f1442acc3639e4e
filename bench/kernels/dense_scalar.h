// Declares the dense kernel as plain loops.

#pragma once

#include "kernels/common/attention_problem.h"

namespace nsimplex::kernels {

/// The lowest rung of the ladder: the definition as plain fp32 loops over tuples, one query at a
/// time, whatever the compiler makes of them. Product reducer.
void scalar_dense_forward(const DenseForward<float>& problem);

}  // namespace nsimplex::kernels

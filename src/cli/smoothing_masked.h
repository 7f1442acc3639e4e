#pragma once

#include "cli/json_lines.h"
#include "cli/verdicts.h"
#include "support/random.h"

namespace nsimplex::cli {

/// Draws a mask that is quasi-strongly connected, and a stack of layers under it, and puts Theorem
/// 3.4 and Lemma B.1 to the test (analysis::masked_steps()), with value weights that are the
/// identity or any. Three in four are scaled to the theorem's assumption; where it fails a stack
/// has no part in the verdict. Weights are drawn from torch's generator.
///
/// {draw: "masked", order, nodes, mask, radius, values, eps, value_product, largest_norm,
/// largest_key_norm, assumption}
Json test_masked(int64_t order, RandomStream& random, Verdicts& verdicts);

}  // namespace nsimplex::cli

// Declares tests of the collapse theorem for masks and of the diameter bound.

#pragma once

#include <functional>

#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "support/random.h"

namespace nsimplex::cli {

/// Draws a mask that is quasi-strongly connected and a stack of layers under it, and tests Theorem
/// 3.4 and Lemma B.1 (analysis::masked_steps()). The value weights are the identity or any. Three
/// in four are scaled to the theorem's assumption; a stack that violates it is left out of the
/// verdict. Weights come from torch's generator.
///
/// {draw: "masked", order, nodes, mask, radius, values, eps, value_product, largest_norm,
/// largest_key_norm, assumption}
Json test_masked(int64_t order, RandomStream& random, Verdicts& verdicts);

/// Tests rad <= diam <= 96 ln(n) / lambda_2 on graphs of standard families (chains, cycles, stars,
/// complete graphs, trees, grids, hypercubes, barbells, growing graphs) with 8 to 512 nodes, and
/// the same bound on the radius of masks of orders 1 to 3, in which information goes one way. Each
/// writes one line with `write`:
///
/// {draw: "mask", family, order, nodes, radius, diameter, lambda_2, bound}; lengths are null if
/// something is not reached.
void test_masks(uint64_t seed, Verdicts& verdicts, const std::function<void(const Json&)>& write);

}  // namespace nsimplex::cli

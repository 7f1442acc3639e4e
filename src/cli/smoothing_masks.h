#pragma once

#include <functional>

#include "cli/json_lines.h"
#include "cli/verdicts.h"

namespace nsimplex::cli {

/// rad <= diam <= 96 ln(n) / lambda_2 on graphs of standard families (chains, cycles, stars,
/// complete graphs, trees, grids, hypercubes, barbells, growing graphs) from 8 to 512 nodes, and
/// the radius of masks of orders 1 to 3, in which information goes one way, beside the same bound.
/// One line each goes to `write`:
///
/// {draw: "mask", family, order, nodes, radius, diameter, lambda_2, bound}; lengths are null where
/// something is not reached.
void test_masks(uint64_t seed, Verdicts& verdicts, const std::function<void(const Json&)>& write);

}  // namespace nsimplex::cli

#pragma once

#include <functional>

#include "cli/json_lines.h"
#include "cli/smoothing_depth.h"
#include "cli/verdicts.h"

namespace nsimplex::cli {

/// Over-squashing: how much the last token of a stack depends on every token of the input,
/// ||d x_i^(L) / d x_j^(0)|| by one backward pass a channel, beside the layers that information
/// needs from j to i. Masks of several radii with unit mean square, L = tokens - 1 layers. What is
/// farther than L must have no influence at all.
///
/// {squash, order, radius, lambda_2, layers, distance, influence}: a list over j each, distances
/// null where i never depends on j.
void test_squashing(int64_t order, const DepthSettings& settings, uint64_t seed, Verdicts& verdicts,
                    const std::function<void(const Json&)>& write);

}  // namespace nsimplex::cli

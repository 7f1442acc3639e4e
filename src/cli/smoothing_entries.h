#pragma once

#include <functional>

#include "cli/json_lines.h"
#include "cli/smoothing_depth.h"

namespace nsimplex::cli {

/// The entries of queries and keys against what they allow: with the largest magnitude of theirs at
/// a bound, how far one layer contracts ||res|| / ||X||, and how far the separable operator (elu
/// features of the same queries and keys) is from softmax, relative, as medians over draws.
///
/// {entry_bound, order, contraction, separable_error}
void sweep_entries(int64_t order, const DepthSettings& settings,
                   const std::function<void(const Json&)>& write);

}  // namespace nsimplex::cli

#pragma once

#include <functional>

#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "lab/smoothing/smoothing_depth.h"

namespace nsimplex::cli {

/// The entries of queries and keys against what they allow: with the largest magnitude of theirs at
/// a bound, how far one layer contracts ||res|| / ||X||, and how far the separable operator (elu
/// features of the same queries and keys) is from softmax, relative, as medians over draws.
///
/// {entry_bound, order, contraction, separable_error}
void sweep_entries(int64_t order, const DepthSettings& settings,
                   const std::function<void(const Json&)>& write);

/// Over-squashing: how much the last token of a stack depends on every token of the input,
/// ||d x_i^(L) / d x_j^(0)|| by one backward pass a channel, beside the layers that information
/// needs from j to i. Masks of several radii with unit mean square, L = tokens - 1 layers. What is
/// farther than L must have no influence at all.
///
/// {squash, order, radius, lambda_2, layers, distance, influence}: a list over j each, distances
/// null where i never depends on j.
void test_squashing(int64_t order, const DepthSettings& settings, uint64_t seed, Verdicts& verdicts,
                    const std::function<void(const Json&)>& write);

struct FlowSettings {
  int64_t order = 1, tokens = 8, channels = 16;
  int64_t seeds = 3;
  double time = 20, step = 0.1;
};

/// The continuous-time model, dx_i/dt = f(X)_i with the weights of one head throughout (value
/// weights any, or the identity), by Euler's method and by Runge and Kutta's of fourth order, plain
/// and with tokens brought back to unit mean square after every step; and whether it collapses, as
/// is conjectured: by the end the largest distance of two tokens, over the largest token, is below
/// a tenth of what it was. A flow that reaches infinity before has no part in the verdict.
///
/// {flow, order, method, norm, values, seed, blew_up, time, dirichlet_energy, distance,
/// relative_distance}: lists from time 0 on, ten points at most that end where numbers do.
void test_flows(const FlowSettings& settings, Verdicts& verdicts,
                const std::function<void(const Json&)>& write);

}  // namespace nsimplex::cli

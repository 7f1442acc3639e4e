// Declares measurements of contraction, over-squashing and collapse in continuous time.

#pragma once

#include <functional>

#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "lab/smoothing/smoothing_depth.h"

namespace nsimplex::cli {

/// Measures the effect of the entries of queries and keys. Their largest magnitude is set to a
/// bound. Then it measures how much one layer contracts ||res|| / ||X||, and the relative
/// difference between the separable operator (elu features of the same queries and keys) and
/// softmax, as medians over draws.
///
/// {entry_bound, order, contraction, separable_error}
void sweep_entries(int64_t order, const DepthSettings& settings,
                   const std::function<void(const Json&)>& write);

/// Over-squashing: how much the last token of a stack depends on every token of the input, ||d
/// x_i^(L) / d x_j^(0)||, by one backward pass per channel, and the number of layers that
/// information needs from j to i. There are masks of several radii with unit mean square and
/// L = tokens - 1 layers. Tokens farther than L must have no influence at all.
///
/// {squash, order, radius, lambda_2, layers, distance, influence}: a list over j each; distances
/// are null if i never depends on j.
void test_squashing(int64_t order, const DepthSettings& settings, uint64_t seed, Verdicts& verdicts,
                    const std::function<void(const Json&)>& write);

struct FlowSettings {
  int64_t order = 1, tokens = 8, channels = 16;
  int64_t seeds = 3;
  double time = 20, step = 0.1;
};

/// The continuous-time model dx_i/dt = f(X)_i with the weights of one head (value weights any, or
/// the identity), by Euler's method and by the fourth-order Runge-Kutta method, plain and with
/// tokens rescaled to unit mean square after every step. It tests the conjecture that the flow
/// collapses: at the end, the largest distance of two tokens, over the largest token, is below a
/// tenth of its initial value. A flow that reaches infinity before that is left out of the verdict.
///
/// {flow, order, method, norm, values, seed, blew_up, time, dirichlet_energy, distance,
/// relative_distance}: lists from time 0 on, with at most ten points, which end where numbers do.
void test_flows(const FlowSettings& settings, Verdicts& verdicts,
                const std::function<void(const Json&)>& write);

}  // namespace nsimplex::cli

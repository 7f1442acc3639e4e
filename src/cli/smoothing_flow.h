#pragma once

#include <functional>

#include "cli/json_lines.h"
#include "cli/verdicts.h"

namespace nsimplex::cli {

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

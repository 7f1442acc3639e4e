#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

/// The commands of `causal` that put statements of its paper to the test.
void add_causal_attenuation(CLI::App& parent, Session& session);
void add_causal_complexity(CLI::App& parent, Session& session);
void add_causal_robustness(CLI::App& parent, Session& session);
void add_causal_synthetic(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

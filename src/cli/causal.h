#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

/// The commands of `causal`, each in the file of its name.
void add_causal_attenuation(CLI::App& parent, Session& session);
void add_causal_classify(CLI::App& parent, Session& session);
void add_causal_cluster(CLI::App& parent, Session& session);
void add_causal_complexity(CLI::App& parent, Session& session);
void add_causal_embed(CLI::App& parent, Session& session);
void add_causal_encode(CLI::App& parent, Session& session);
void add_causal_fit(CLI::App& parent, Session& session);
void add_causal_perturb(CLI::App& parent, Session& session);
void add_causal_predict(CLI::App& parent, Session& session);
void add_causal_regress(CLI::App& parent, Session& session);
void add_causal_robustness(CLI::App& parent, Session& session);
void add_causal_simulate(CLI::App& parent, Session& session);
void add_causal_synthetic(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

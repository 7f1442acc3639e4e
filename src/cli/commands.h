#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

// One function a command, each in the file of its name.
void add_info_command(CLI::App& parent, Session& session);
void add_lm_command(CLI::App& parent, Session& session);
void add_bench_command(CLI::App& parent, Session& session);
void add_report_command(CLI::App& parent, Session& session);
void add_verify_command(CLI::App& parent, Session& session);
void add_task_command(CLI::App& parent, Session& session);
void add_graph_command(CLI::App& parent, Session& session);
void add_analyze_command(CLI::App& parent, Session& session);
void add_causal_command(CLI::App& parent, Session& session);

/// The command of `bench` that has a file of its own.
void add_bench_sparse(CLI::App& parent, Session& session);


/// The commands of `analyze`, each in the file of its name.
void add_analyze_curvature(CLI::App& parent, Session& session);
void add_analyze_lipschitz(CLI::App& parent, Session& session);
void add_analyze_model(CLI::App& parent, Session& session);
void add_analyze_sensitivity(CLI::App& parent, Session& session);
void add_analyze_smoothing(CLI::App& parent, Session& session);
void add_analyze_transfer(CLI::App& parent, Session& session);


/// The commands of `graph`, each in the file of its name.
void add_graph_chains(CLI::App& parent, Session& session);
void add_graph_delaunay(CLI::App& parent, Session& session);
void add_graph_expressivity(CLI::App& parent, Session& session);
void add_graph_hyperedges(CLI::App& parent, Session& session);
void add_graph_jets(CLI::App& parent, Session& session);
void add_graph_molecules(CLI::App& parent, Session& session);
void add_graph_scaling(CLI::App& parent, Session& session);


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

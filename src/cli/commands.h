// Declares one function per command of nsimplex.

#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

// One function per command of nsimplex.
void add_info_command(CLI::App& parent, Session& session);
void add_lm_command(CLI::App& parent, Session& session);
void add_bench_command(CLI::App& parent, Session& session);
void add_report_command(CLI::App& parent, Session& session);
void add_verify_command(CLI::App& parent, Session& session);
void add_graph_command(CLI::App& parent, Session& session);
void add_analyze_command(CLI::App& parent, Session& session);
void add_causal_command(CLI::App& parent, Session& session);
void add_completion_command(CLI::App& parent, Session& session);
void add_man_command(CLI::App& parent, Session& session);

// The other command of `bench`.
void add_bench_sparse(CLI::App& parent, Session& session);

// The commands of `analyze`.
void add_analyze_attention(CLI::App& parent, Session& session);
void add_analyze_curvature(CLI::App& parent, Session& session);
void add_analyze_model(CLI::App& parent, Session& session);

// The commands of `graph`.
void add_graph_expressivity(CLI::App& parent, Session& session);
void add_graph_predict(CLI::App& parent, Session& session);
void add_graph_train(CLI::App& parent, Session& session);

// The commands of `causal`.
void add_causal_check(CLI::App& parent, Session& session);
void add_causal_effect(CLI::App& parent, Session& session);
void add_causal_embed(CLI::App& parent, Session& session);
void add_causal_encode(CLI::App& parent, Session& session);
void add_causal_fit(CLI::App& parent, Session& session);
void add_causal_predict(CLI::App& parent, Session& session);
void add_causal_simulate(CLI::App& parent, Session& session);
void add_causal_task(CLI::App& parent, Session& session);

// The tasks of `causal task`.
void add_task_classify(CLI::App& parent, Session& session);
void add_task_cluster(CLI::App& parent, Session& session);
void add_task_perturb(CLI::App& parent, Session& session);
void add_task_regress(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

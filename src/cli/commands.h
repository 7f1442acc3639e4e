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

}  // namespace nsimplex::cli

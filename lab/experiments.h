// Declares one function per experiment, which adds its command to nsimplex-lab.

#pragma once

#include "cli/app.h"
#include "cli/options.h"

/// The laboratory: experiments that test the papers' claims. Each one is a command of nsimplex-lab.
/// It uses the library and the product's commands, and neither depends on it.
namespace nsimplex::lab {

/// The program nsimplex-lab, which `nsimplex lab` runs.
extern const cli::Program kProgram;

}  // namespace nsimplex::lab

namespace nsimplex::cli {

/// The text of lab/published.json, which the build puts into the program.
extern const char* const kExperimentFigures;

// One function per experiment, in the room of its topic.

/// match2, match3 and match4.
void add_match_commands(CLI::App& parent, Session& session);

void add_lm_compare(CLI::App& parent, Session& session);
void add_lm_scaling(CLI::App& parent, Session& session);

void add_graph_chains(CLI::App& parent, Session& session);
void add_graph_scaling(CLI::App& parent, Session& session);
void add_graph_delaunay(CLI::App& parent, Session& session);
void add_graph_jets(CLI::App& parent, Session& session);
void add_graph_hyperedges(CLI::App& parent, Session& session);
void add_graph_molecules(CLI::App& parent, Session& session);

void add_causal_synthetic(CLI::App& parent, Session& session);
void add_causal_attenuation(CLI::App& parent, Session& session);
void add_causal_robustness(CLI::App& parent, Session& session);
void add_causal_complexity(CLI::App& parent, Session& session);

void add_analyze_smoothing(CLI::App& parent, Session& session);
void add_analyze_lipschitz(CLI::App& parent, Session& session);
void add_analyze_sensitivity(CLI::App& parent, Session& session);
void add_analyze_transfer(CLI::App& parent, Session& session);

/// In Python, nsimplex.lab.pays.
void add_lab_pays(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

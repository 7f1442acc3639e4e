// Lists the experiments that the program nsimplex-lab offers.

#include "lab/experiments.h"

#include "cli/commands.h"

namespace nsimplex::lab {
namespace {

void add_experiments(CLI::App& app, cli::Session& session) {
  cli::add_match_commands(app, session);
  cli::add_lm_compare(app, session);
  cli::add_lm_scaling(app, session);
  cli::add_graph_chains(app, session);
  cli::add_graph_scaling(app, session);
  cli::add_graph_delaunay(app, session);
  cli::add_graph_jets(app, session);
  cli::add_graph_hyperedges(app, session);
  cli::add_graph_molecules(app, session);
  cli::add_causal_synthetic(app, session);
  cli::add_causal_attenuation(app, session);
  cli::add_causal_robustness(app, session);
  cli::add_causal_complexity(app, session);
  cli::add_analyze_smoothing(app, session);
  cli::add_analyze_lipschitz(app, session);
  cli::add_analyze_sensitivity(app, session);
  cli::add_analyze_transfer(app, session);
  cli::add_lab_pays(app, session);
  // The script of nsimplex asks for the first.
  cli::add_completion_command(app, session);
  cli::add_man_command(app, session);
  for (const char* name : {"completion", "man"}) app.get_subcommand(name)->group("");
}

}  // namespace

const cli::Program kProgram{"nsimplex lab", "Experiments that test what the papers claim.", "",
                            add_experiments};

}  // namespace nsimplex::lab

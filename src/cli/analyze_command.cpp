#include "cli/analyze.h"
#include "cli/commands.h"

namespace nsimplex::cli {

void add_analyze_command(CLI::App& parent, Session& session) {
  CLI::App& group = add_group(parent, "analyze", "Statements about attention and graphs, tested");
  add_analyze_curvature(group, session);
  add_analyze_lipschitz(group, session);
  add_analyze_model(group, session);
  add_analyze_sensitivity(group, session);
  add_analyze_smoothing(group, session);
  add_analyze_transfer(group, session);
}

}  // namespace nsimplex::cli

#include "cli/causal.h"
#include "cli/commands.h"

namespace nsimplex::cli {

void add_causal_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "causal", "Causal graphs of tables, and encodings made of them");
  add_causal_embed(group, session);
  add_causal_encode(group, session);
  add_causal_fit(group, session);
  add_causal_simulate(group, session);
  add_causal_synthetic(group, session);
  add_causal_attenuation(group, session);
  add_causal_robustness(group, session);
  add_causal_complexity(group, session);
  add_causal_perturb(group, session);
  add_causal_classify(group, session);
  add_causal_cluster(group, session);
  add_causal_regress(group, session);
  add_causal_predict(group, session);
}

}  // namespace nsimplex::cli

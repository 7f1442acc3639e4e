#include "cli/commands.h"
#include "cli/graph.h"

namespace nsimplex::cli {

void add_graph_command(CLI::App& parent, Session& session) {
  CLI::App& group =
      add_group(parent, "graph", "Equivariant layers on sets, graphs and hypergraphs");
  add_graph_expressivity(group, session);
  add_graph_chains(group, session);
  add_graph_scaling(group, session);
  add_graph_delaunay(group, session);
  add_graph_jets(group, session);
  add_graph_hyperedges(group, session);
  add_graph_molecules(group, session);
}

}  // namespace nsimplex::cli

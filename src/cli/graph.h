#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

/// The commands of `graph`, each in the file of its name.
void add_graph_chains(CLI::App& parent, Session& session);
void add_graph_delaunay(CLI::App& parent, Session& session);
void add_graph_expressivity(CLI::App& parent, Session& session);
void add_graph_hyperedges(CLI::App& parent, Session& session);
void add_graph_jets(CLI::App& parent, Session& session);
void add_graph_molecules(CLI::App& parent, Session& session);
void add_graph_scaling(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

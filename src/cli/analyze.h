#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

/// The commands of `analyze`, each in the file of its name.
void add_analyze_curvature(CLI::App& parent, Session& session);
void add_analyze_lipschitz(CLI::App& parent, Session& session);
void add_analyze_model(CLI::App& parent, Session& session);
void add_analyze_sensitivity(CLI::App& parent, Session& session);
void add_analyze_smoothing(CLI::App& parent, Session& session);
void add_analyze_transfer(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

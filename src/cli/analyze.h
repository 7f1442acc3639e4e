#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

/// The commands of `analyze`, each in the file of its name.
void add_analyze_curvature(CLI::App& parent, Session& session);

}  // namespace nsimplex::cli

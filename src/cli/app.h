#pragma once

#include <memory>

#include "cli/options.h"

namespace nsimplex::cli {

/// The command line with all its commands. Parsing it puts into `session` what is to be run.
std::unique_ptr<CLI::App> make_app(Session& session);

/// Runs the command line and returns the process's exit code: 0, 1 (the run failed), 2 (bad usage
/// or input) or 130 (interrupted).
int run(int argc, char** argv);

}  // namespace nsimplex::cli

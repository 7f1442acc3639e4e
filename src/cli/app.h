#pragma once

namespace nsimplex::cli {

/// Runs the command line and returns the process's exit code: 0, 1 (the run failed), 2 (bad usage
/// or input) or 130 (interrupted).
int run(int argc, char** argv);

}  // namespace nsimplex::cli

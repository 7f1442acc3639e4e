#pragma once

#include <memory>

#include "cli/options.h"

namespace nsimplex::cli {

/// Memory of tensors stays with the process once it is freed, and takes huge pages from 2 MB on,
/// where system and C library allow. Otherwise every tensor of a step that is larger than 32 MB is
/// cleared by the system page by page: a third of the time of a pass over half a million edges.
///
/// To be called before the first tensor is made. A THP_MEM_ALLOC_ENABLE of the environment, which
/// decides on huge pages, is left as it is.
void keep_freed_memory();


/// The command line with all its commands. Parsing it puts into `session` what is to be run.
std::unique_ptr<CLI::App> make_app(Session& session);

/// Runs the command line and returns the process's exit code: 0, 1 (the run failed), 2 (bad usage
/// or input) or 130 (interrupted).
int run(int argc, char** argv);

}  // namespace nsimplex::cli

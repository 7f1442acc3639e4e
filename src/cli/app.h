#pragma once

#include <memory>
#include <span>

#include "cli/options.h"

namespace nsimplex::cli {

/// Memory of tensors stays with the process once it is freed, and takes huge pages from 2 MB on,
/// where system and C library allow. Otherwise every tensor of a step that is larger than 32 MB is
/// cleared by the system page by page: a third of the time of a pass over half a million edges.
///
/// To be called before the first tensor is made. A THP_MEM_ALLOC_ENABLE of the environment, which
/// decides on huge pages, is left as it is.
void keep_freed_memory();

/// A program: its name as a user types it, what it is for, what its help says at the end, and the
/// function that adds its commands.
struct Program {
  const char* name;
  const char* summary;
  const char* footer;
  void (*add_commands)(CLI::App& app, Session& session);
};

/// The program nsimplex.
extern const Program kProduct;

/// The command line of a program. Parsing it puts into `session` what is to be run.
std::unique_ptr<CLI::App> make_app(const Program& program, Session& session);

/// Runs a program on its arguments, the first of which is the program itself, and returns the exit
/// code of the process: 0, 1 (the run failed), 2 (bad usage or input) or 130 (interrupted).
int run(const Program& program, std::span<char* const> arguments);

}  // namespace nsimplex::cli

// Declares a program of commands and how it is run.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"

namespace nsimplex::cli {

/// Makes the process keep the memory of freed tensors and use huge pages from 2 MB on, if system
/// and C library allow. Otherwise the system clears every tensor of a step above 32 MB page by
/// page, which takes a third of the time of a pass over half a million edges.
///
/// Call this before the first tensor is made. If THP_MEM_ALLOC_ENABLE, which controls huge pages,
/// is set in the environment, it is not changed.
void keep_freed_memory();

/// A program: its name as a user types it, its purpose, the last text of its help, and the function
/// that adds its commands.
struct Program {
  const char* name;
  const char* summary;
  const char* footer;
  void (*add_commands)(CLI::App& app, Session& session);
};

/// The program nsimplex.
extern const Program kProduct;

/// The command line of a program. Parsing it stores the command to run in `session`.
std::unique_ptr<CLI::App> make_app(const Program& program, Session& session);

/// The words after the program's name. "help lm train" becomes "lm train --help", and "version"
/// becomes "--version".
std::vector<std::string> typed_words(int count, char** arguments);

/// Runs a program on the words after its name. Returns the exit code of the process: 0, 1 (the run
/// failed), 2 (bad usage or input) or 130 (interrupted).
///
/// Several ranks may run one command together: `lm train`, `graph train`. Ranks other than 0 print nothing but
/// errors of their own.
int run(const Program& program, std::vector<std::string> words,
        training::Ranks& ranks = training::only_rank());

/// Ends the process at once, when what was printed is written. A program that returns from its main
/// function takes 0.1 s longer, because PyTorch takes each of its operators out of its registries.
[[noreturn]] void leave(int code);

}  // namespace nsimplex::cli

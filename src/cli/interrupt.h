#pragma once

#include <exception>

namespace nsimplex::cli {

/// Thrown where a command stops because it was told to; the process exits with 130.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Ctrl-C as a flag. The first SIGINT or SIGTERM asks the command to stop at the next good moment
/// (a training step, a benchmark round) and keep what it reached; the second one ends the process
/// at once.
namespace interrupt {

/// Installs the handlers; SIGPIPE is ignored, so that a closed pipe is an error of the write.
void install();

/// True once a signal has come.
bool requested();

/// Throws Interrupted when a signal has come.
void check();

}  // namespace interrupt
}  // namespace nsimplex::cli

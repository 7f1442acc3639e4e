#pragma once

#include <exception>

namespace nsimplex::cli {

/// The exit code of a command that was told to stop, as a shell gives it for Ctrl-C.
constexpr int kInterruptedCode = 130;

/// Thrown where a command stops because it was told to; the process exits with kInterruptedCode.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Ctrl-C and SIGTERM. Until a command asks for the first time whether a signal has come, a signal ends the process
/// at once with 130: files are being read and nothing is lost. From then on the first signal asks the command to stop
/// at the next good moment (a training step, a benchmark round) and to keep what it reached; the second one ends the
/// process at once.
namespace interrupt {

/// Installs the handlers; SIGPIPE and SIGXFSZ are ignored, so that a closed pipe and a file that may
/// not grow are errors of the write.
void install();

/// True once a signal has come. The first call is defer(), too.
bool requested();

/// From here on the command has something to keep, and a signal waits for requested() or check().
void defer();

/// Throws Interrupted when a signal has come.
void check();

}  // namespace interrupt
}  // namespace nsimplex::cli

// Declares parts of commands that are written in Python.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/output.h"

namespace nsimplex::cli {

/// A part of a command that is written in Python: `main()` of a module of the package.
struct PythonProgram {
  std::string command;  ///< how messages call it
  std::string module;   ///< nsimplex.report.__main__
  std::string package;  ///< what it needs besides nsimplex and torch, or nothing
  std::string extra;    ///< the extra of nsimplex that has the package
  std::vector<std::string> arguments;
};

/// Runs the program in a separate process and returns its exit code. The process shares standard
/// error, where it reports its own errors as the commands do, and it ends with this one. Each line
/// of its standard output is a JSON object, which goes to `take`. If `take` returns a text, the
/// program gets it as a line of its standard input. Without `take` the output is thrown away.
///
/// {"error": {"kind": .., "text": ..}} says why the program ends: "input" is thrown as InputError,
/// "failed" as std::runtime_error, and every other kind goes to `take`.
///
/// With `take`, Ctrl-C and SIGTERM reach the program as one SIGTERM. It then ends at its next good
/// moment with kInterruptedCode, and this function throws Interrupted.
int run_python(const PythonProgram& program,
               const std::function<std::string(const Json&)>& take = nullptr);

/// A program that runs beside a command, and not longer. Its first line says that it is ready, or
/// has an error, which is thrown as run_python() does. The process ignores Ctrl-C.
class PythonCompanion {
 public:
  explicit PythonCompanion(const PythonProgram& program);
  /// Ends its standard input and waits for its end, for at most a minute. Warns in one line if it
  /// has not ended by then, or has failed.
  ~PythonCompanion();
  PythonCompanion(const PythonCompanion&) = delete;
  PythonCompanion& operator=(const PythonCompanion&) = delete;

  /// Sends a line, unless the program has ended.
  void tell(const std::string& line);

 private:
  struct Process;

  std::string command_;
  std::unique_ptr<Process> process_;
};

/// The text of a table that a program sent: rows of cells, the header first.
std::string text_of_table(const Json& rows);

}  // namespace nsimplex::cli

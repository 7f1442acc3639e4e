#pragma once

#include <fstream>

#include "cli/json_lines.h"
#include "cli/options.h"

namespace nsimplex::cli {

/// What a command finds out, one JSON object a line: into metrics.jsonl of the run directory, where
/// --out names one, beside config.toml, and to standard output where `shown` with --json. Every
/// line is written through at once, so that an interrupted run keeps what it reached.
class RunLog {
 public:
  /// Throws InputError where the directory cannot be written.
  explicit RunLog(const CommonOptions& options);

  /// Throws std::runtime_error where the line cannot be stored.
  void write(const Json& line, bool shown = true);

 private:
  std::ofstream file_;
  bool json_;
};

}  // namespace nsimplex::cli

#pragma once

#include <chrono>
#include <optional>

#include "cli/json_lines.h"
#include "cli/options.h"
#include "io/folder_lock.h"
#include "io/line_file.h"

namespace nsimplex::cli {

/// What a command finds out, one JSON object a line: into metrics.jsonl of the run directory, where
/// --out names one, beside config.toml, and to standard output where `shown` with --json. Every
/// line is written through at once, so that an interrupted run keeps what it reached; lines are
/// flushed to disk once a second and at the end. The directory is locked as long as this lives.
class RunLog {
 public:
  /// Throws InputError where the directory cannot be written, is in use by another process or
  /// holds an earlier run.
  explicit RunLog(const CommonOptions& options);
  /// Throws std::runtime_error where the last lines cannot be flushed and nothing else has failed.
  ~RunLog() noexcept(false);

  /// Throws std::runtime_error where the line cannot be stored.
  void write(const Json& line, bool shown = true);

 private:
  std::optional<io::FolderLock> lock_;
  std::optional<io::LineFile> file_;
  std::chrono::steady_clock::time_point synced_;
  bool json_;
};

}  // namespace nsimplex::cli

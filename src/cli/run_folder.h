#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "io/output_file.h"

namespace nsimplex::cli {

/// Name of the file with the options of a run.
inline constexpr char kConfigFile[] = "config.toml";

/// What config.toml of a run holds: the command that was typed as a comment, then every option.
std::string config_file(const CommonOptions& options);

/// Creates the run directory and proves that it can be written; InputError otherwise.
void make_run_directory(const std::string& path);

/// Whether the run that `folder` holds can be continued by the command of `options`.
bool can_continue(const CommonOptions& options, const std::string& folder);

/// Tells on standard error how a run that was interrupted goes on, where it can.
void say_how_to_continue(const CommonOptions& options);

/// What a command finds out, one JSON object a line: into metrics.jsonl of the run directory, where
/// --out names one, beside config.toml, and to standard output where `shown` with --json. Every
/// line is written through at once, so that an interrupted run keeps what it reached; lines are
/// flushed to disk once a second and at the end. The directory is locked as long as this lives.
///
/// A run that continues (--resume) adds to the lines that are there. A last line that is not whole,
/// as a killed process leaves it, goes first; a line that is there already is not written again.
class RunLog {
 public:
  /// Throws InputError where the directory cannot be written, is in use by another process or
  /// holds an earlier run.
  explicit RunLog(const CommonOptions& options);
  /// Throws std::runtime_error where the last lines cannot be flushed and nothing else has failed.
  ~RunLog() noexcept(false);

  /// Writes a line of a kind (`of_kind`). Throws std::runtime_error where it cannot be stored.
  void write(std::string_view kind, const Json& line, bool shown = true);

  /// Flushes to disk what was written: a checkpoint that counts on it may follow.
  void sync();

  /// For the end of a command: tells on standard error that the run had been finished already, where
  /// it was resumed and no line was new.
  void say_if_finished() const;

  /// The lines that the run had when it was resumed; none of a new run.
  const std::vector<Json>& earlier() const { return earlier_; }

  /// The last of them that has all fields of `key`; nullptr where there is none.
  const Json* find(const Json& key) const;

 private:
  int64_t read_earlier(const std::string& path);

  std::vector<Json> earlier_;
  std::set<std::string> known_;  // the same lines as they are written
  std::optional<io::FolderLock> lock_;
  std::optional<io::LineFile> file_;
  std::chrono::steady_clock::time_point synced_;
  std::string resumed_;  // the folder; empty: a new run
  bool json_, added_ = false;
};

/// Name of the file with sizes and checksums of the files that a run reads.
inline constexpr char kInputsFile[] = "inputs.json";

/// Writes the sizes and checksums of `options.inputs` into the folder of a new run.
void write_inputs(const CommonOptions& options);

/// Throws InputError with the name of the first input that is not as it was when the run in
/// `options.resume` began. A run without kInputsFile, of an earlier version, is not checked.
void check_inputs(const CommonOptions& options);

}  // namespace nsimplex::cli

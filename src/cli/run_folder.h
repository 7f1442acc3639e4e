// Declares the folder of a run, its result lines and how it continues.

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

/// The contents of a run's config.toml: the typed command as a comment, then every option.
std::string config_file(const CommonOptions& options);

/// The folder of a run without --out: runs/NAME-TIME, which did not exist before. `options.out` gets
/// its name. The folder goes again if nothing was written into it.
class NewRunFolder {
 public:
  /// `input`: a file after which the run is named; empty: no folder is made. Throws InputError if
  /// it cannot be made.
  NewRunFolder(CommonOptions& options, const std::string& input);
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

 private:
  std::string path_;
};

/// Creates the run directory, checks that it can be written, and reports the one of a run without
/// --out. InputError if it cannot be written.
void make_run_directory(const CommonOptions& options);

/// Whether the command of `options` can continue the run in `folder`.
bool can_continue(const CommonOptions& options, const std::string& folder);

/// Whether --out has a run of this very command, which a launcher repeats after a failure. The run
/// then continues.
bool is_repeated(const CommonOptions& options);

/// Reports on standard error how an interrupted run can continue, if it can.
void say_how_to_continue(const CommonOptions& options);

/// The results of a command, one JSON object per line. They go into metrics.jsonl of the run
/// directory beside config.toml, if --out is given, and with --json to standard output if `shown`.
/// Every line is written through at once, so an interrupted run keeps its results. Lines are
/// flushed to disk once per second and at the end. The directory is locked while this object lives.
///
/// A run that continues (--resume) adds to the existing lines. An incomplete last line, as a killed
/// process leaves it, is removed first. A line that exists already is not written again.
///
/// Of several ranks, only rank 0 writes.
class RunLog {
 public:
  /// Throws InputError if the directory cannot be written, is in use by another process or holds an
  /// earlier run.
  explicit RunLog(const CommonOptions& options);
  /// Throws std::runtime_error if the last lines cannot be flushed and nothing else has failed.
  ~RunLog() noexcept(false);

  /// Gives the other ranks the earlier lines of rank 0. All ranks call it before the first write().
  void share(training::Ranks& ranks);

  /// Writes a line of a kind (`of_kind`). Throws std::runtime_error if it cannot be stored.
  void write(std::string_view kind, const Json& line, bool shown = true);

  /// Flushes all lines to disk, for a checkpoint that relies on them.
  void sync();

  /// For the end of a command: reports on standard error that a resumed run was finished already,
  /// if no line was new.
  void say_if_finished() const;

  /// The lines that the run had when it was resumed; empty for a new run.
  const std::vector<Json>& earlier() const { return earlier_; }

  /// The last of them that has all fields of `key`; nullptr if there is none.
  const Json* find(const Json& key) const;

 private:
  int64_t read_earlier(const std::string& path);

  std::vector<Json> earlier_;
  std::set<std::string> known_;  // the same lines as text
  std::optional<io::FolderLock> lock_;
  std::optional<io::LineFile> file_;
  std::chrono::steady_clock::time_point synced_;
  std::string resumed_;  // the folder; empty for a new run
  bool json_, added_ = false;
};

/// The name of the file with sizes and checksums of the files that a run reads.
inline constexpr char kInputsFile[] = "inputs.json";

/// The name of the file with the build and the machine of a run, for its page.
inline constexpr char kInfoFile[] = "info.json";

/// Version, commit, compiler, torch, processor, SIMD level in use and number of threads.
Json build_and_machine();

/// Writes the sizes and checksums of `options.inputs` into the folder of a new run.
void write_inputs(const CommonOptions& options);

/// Throws InputError with the name of the first input that has changed since the run in
/// `options.resume` began. A run of an earlier version, without kInputsFile, is not checked.
void check_inputs(const CommonOptions& options);

}  // namespace nsimplex::cli

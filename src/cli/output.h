// Declares JSON lines, tables, progress bars and the handling of interrupt signals.

#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/statement.h"

namespace nsimplex::cli {

/// Fields keep the order in which a command writes them, which is the documented one.
using Json = nlohmann::ordered_json;

/// The object with the field `kind` before all others. It names the topic of the line, and readers
/// distinguish lines by it.
Json of_kind(std::string_view kind, const Json& object);

/// Writes one object of a kind as one line to standard output. Text that is not UTF-8 is replaced
/// and never an error. Numbers that JSON cannot express (NaN, infinities) become null.
void print_json_line(std::string_view kind, const Json& object);

/// JSON on one line. Bytes that are no UTF-8 become replacement characters.
std::string one_line(const Json& json);

/// The exit code of a command that was told to stop, which is a shell's for Ctrl-C.
constexpr int kInterruptedCode = 130;

/// Thrown if a command stops because it was told to; the process exits with kInterruptedCode.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Ctrl-C and SIGTERM. Until a command first asks whether a signal has come, a signal ends the
/// process at once with 130: files are being read and nothing is lost. From then on the first
/// signal asks the command to stop at the next good moment (a training step, a benchmark round) and
/// to keep its results. The second one ends the process at once.
namespace interrupt {

/// Installs the handlers. SIGPIPE and SIGXFSZ are ignored, so that a closed pipe and a file that
/// may not grow are errors of the write.
void install();

/// True once a signal has come. The first call also calls defer().
bool requested();

/// From here on the command has results to keep, and a signal waits for requested() or check().
void defer();

/// Throws Interrupted if a signal has come.
void check();

}  // namespace interrupt

/// From here on print(), progress and the line about a signal are silent: another rank prints them.
void mute();

/// Thrown if the reader of standard output closed it (`nsimplex ... | head`); the process ends
/// quietly.
struct OutputClosed : std::exception {
  const char* what() const noexcept override { return "standard output was closed"; }
};

/// Writes text to standard output at once. Results go there; everything else goes to standard
/// error. Throws OutputClosed, or std::runtime_error if the text cannot be written, as on a full
/// disk.
void print(std::string_view text);

/// Writes text to standard error. Text that cannot be written is lost, and the command goes on.
void print_error(std::string_view text);

/// Keeps the numbers of standard input, output and error that are closed from files that are opened
/// later: what is written there fails.
void reserve_standard_descriptors();

/// A plain text table: the first column is left-aligned, the others right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Progress of a command on standard error: one line that redraws itself on a terminal (bar, rate,
/// time left), a plain line now and then when piped, nothing when quiet (--json).
///
///     ProgressBar bar("train", steps, options.json);
///     for (...) bar.update(step, fmt::format("loss {:.3f}", loss));
///     bar.finish();
class ProgressBar {
 public:
  ProgressBar(std::string label, int64_t total, bool quiet);  ///< total 0: unknown
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// The work done so far, out of `total`; `detail` is shown after the rate. Cheap: it draws at
  /// most ten times per second on a terminal, and otherwise once in ten seconds.
  void update(int64_t done, std::string_view detail = {});

  /// Work that was done before this run (a resumed training), which does not count for the rate.
  void start_at(int64_t done);

  /// Prints a separate line above the bar.
  void note(std::string_view line);

  /// Draws the last state and ends the line. The destructor calls it too.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  std::string label_;
  int64_t total_;
  bool quiet_, terminal_;
  int64_t start_ = 0, done_ = 0, drawn_at_ = 0;
  std::string detail_;
  Clock::time_point begun_, drawn_;
  bool pending_ = false, finished_ = false;
};

/// "4.2s", "3m05s", "2h07m", for display.
std::string format_duration(double seconds);

/// The local time, written as std::strftime does.
std::string local_time(const char* pattern);

/// {statement, draws, holds, violations, median_slack}, the fields that every `analyze` command
/// reports for a statement; commands add to them. A slack that is NaN becomes null.
Json to_json(const analysis::Statement& statement);

/// The same as a table, with one row per statement, and their sources if they have any.
std::string statements_table(const std::vector<analysis::Statement>& statements);

}  // namespace nsimplex::cli

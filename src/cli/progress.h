#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace nsimplex::cli {

/// Progress of a command on standard error: one line that redraws itself on a terminal (bar, rate,
/// time left), a plain line now and then when piped, nothing when quiet (--json).
///
///     ProgressBar bar("train", steps, options.json);
///     for (...) bar.update(step, fmt::format("loss {:.3f}", loss));
///     bar.finish();
class ProgressBar {
 public:
  ProgressBar(std::string label, int64_t total, bool quiet);  ///< total 0: nobody knows it
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Work done so far, out of `total`; `detail` is shown behind the rate. Cheap: draws ten times a
  /// second at most on a terminal, once in ten seconds otherwise.
  void update(int64_t done, std::string_view detail = {});

  /// Work that was done before this run (a resumed training), which must not count for the rate.
  void start_at(int64_t done);

  /// Prints a line of its own above the bar.
  void note(std::string_view line);

  /// Draws the last state and ends the line; called by the destructor too.
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

/// "4.2s", "3m05s", "2h07m": for people.
std::string format_duration(double seconds);

}  // namespace nsimplex::cli

#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "support/printable.h"

namespace nsimplex::cli {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kPipedInterval = std::chrono::milliseconds(10'000);
constexpr int kBarCells = 24;

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string format_duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

ProgressBar::ProgressBar(std::string label, int64_t total, bool quiet)
    : label_(std::move(label)),
      total_(total),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      begun_(Clock::now()),
      drawn_(begun_ - kPipedInterval) {}  // the first update shows at once

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::start_at(int64_t done) {
  start_ = done_ = done;
  begun_ = Clock::now();
}

void ProgressBar::update(int64_t done, std::string_view detail) {
  done_ = done;
  detail_ = detail;
  pending_ = true;
  const auto since = Clock::now() - drawn_;
  const bool first = done > start_ && drawn_at_ <= start_;  // a sign of life
  if (first || since >= (terminal_ ? kTerminalInterval : kPipedInterval)) draw();
}

void ProgressBar::note(std::string_view line) {
  if (quiet_) return;
  fmt::print(stderr, "{}{}\n", terminal_ ? "\r\x1b[K" : "", printable(line));
  if (terminal_ && !finished_) draw();
}

void ProgressBar::finish() {
  if (finished_) return;
  if (pending_) draw();
  finished_ = true;
  if (!quiet_ && terminal_) std::fputc('\n', stderr);
}

void ProgressBar::draw() {
  pending_ = false;
  drawn_at_ = done_;
  drawn_ = Clock::now();
  if (quiet_) return;
  const double elapsed = std::chrono::duration<double>(drawn_ - begun_).count();
  const double rate = elapsed > 0 ? static_cast<double>(done_ - start_) / elapsed : 0;
  const bool counted = total_ > 0;
  std::string line = fmt::format("{} {}", label_, done_);
  if (counted) line += fmt::format("/{}", total_);
  if (rate > 0) {
    line += rate >= 1 ? fmt::format("  {:.1f}/s", rate)
                      : fmt::format("  {} each", format_duration(1 / rate));
    line +=
        counted && done_ < total_
            ? fmt::format("  {} left", format_duration(static_cast<double>(total_ - done_) / rate))
            : fmt::format("  {}{}", counted ? "took " : "", format_duration(elapsed));
  }
  if (!detail_.empty()) line += "  " + detail_;
  if (!terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  std::string bar;
  if (counted) {
    const int filled = static_cast<int>(kBarCells * std::min(done_, total_) / total_);
    for (int cell = 0; cell < kBarCells; ++cell) bar += cell < filled ? "━" : "─";
    bar += ' ';
  }
  const auto room = static_cast<size_t>(std::max(terminal_width() - kBarCells - 2, 10));
  fmt::print(stderr, "\r{}{}\x1b[K", bar, line.substr(0, room));
  std::fflush(stderr);
}

}  // namespace nsimplex::cli

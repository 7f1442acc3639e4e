// Prints JSON lines, tables and progress bars, and handles interrupt signals.

#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "io/output_file.h"
#include "support/printable.h"

namespace nsimplex::cli {

Json of_kind(std::string_view kind, const Json& object) {
  Json line{{"kind", kind}};
  for (const auto& [name, value] : object.items()) {
    if (name != "kind") line[name] = value;
  }
  return line;
}

void print_json_line(std::string_view kind, const Json& object) {
  print(one_line(of_kind(kind, object)) + "\n");
}

std::string local_time(const char* pattern) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 64> text;
  return {text.data(), std::strftime(text.data(), text.size(), pattern, &parts)};
}

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace nsimplex::cli

namespace nsimplex::cli::interrupt {
namespace {

volatile std::sig_atomic_t flag = 0;
volatile std::sig_atomic_t asked = 0;  // whether the flag is ever read
volatile std::sig_atomic_t muted = 0;

// A handler may use only what POSIX allows: flags, write(), unlink(), signal() and _exit().
extern "C" void on_signal(int signal) {
  if (!asked) {
    io::abandon_temporary();
    _exit(kInterruptedCode);
  }
  flag = 1;
  constexpr char kMessage[] = "\nnsimplex: stopping; once more to stop at once\n";
  if (!muted) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  }
  std::signal(signal, SIG_DFL);
}

}  // namespace

void install() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool requested() {
  defer();
  return flag != 0;
}

void defer() { asked = 1; }

void check() {
  if (requested()) throw Interrupted();
}

}  // namespace nsimplex::cli::interrupt

namespace nsimplex::cli {

void mute() { interrupt::muted = 1; }

void print(std::string_view text) {
  if (interrupt::muted) return;
  errno = 0;
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  const int why = errno;
  if (why == EPIPE) throw OutputClosed();
  throw std::runtime_error(fmt::format("cannot write to standard output: {}", std::strerror(why)));
}

void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void reserve_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    // The lowest free number is this one, because those below are open. It is opened the wrong way
    // round, so that nothing that is read or written there seems to succeed.
    [[maybe_unused]] const int opened =
        open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

namespace {

// Characters of UTF-8: all bytes but those that continue one.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  for (std::string& cell : row) cell = printable(cell);  // names come from files, too
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - width_of(row[column]), ' ');
      const bool last = column + 1 == row.size();
      if (column == 0) {
        text += last ? row[column] : row[column] + padding;
      } else {
        text += "  " + padding + row[column];
      }
    }
    text += '\n';
  }
  return text;
}

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
      quiet_(quiet || interrupt::muted),
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
  const bool first = done > start_ && drawn_at_ <= start_;  // an early first update
  if (first || since >= (terminal_ ? kTerminalInterval : kPipedInterval)) draw();
}

void ProgressBar::note(std::string_view line) {
  if (quiet_) return;
  print_error(fmt::format("{}{}\n", terminal_ ? "\r\x1b[K" : "", printable(line)));
  if (terminal_ && !finished_) draw();
}

void ProgressBar::finish() {
  if (finished_) return;
  if (pending_) draw();
  finished_ = true;
  if (!quiet_ && terminal_) print_error("\n");
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
    print_error(line + "\n");
    return;
  }
  std::string bar;
  if (counted) {
    const int filled = static_cast<int>(kBarCells * std::min(done_, total_) / total_);
    for (int cell = 0; cell < kBarCells; ++cell) bar += cell < filled ? "━" : "─";
    bar += ' ';
  }
  const auto room = static_cast<size_t>(std::max(terminal_width() - kBarCells - 2, 10));
  print_error(fmt::format("\r{}{}\x1b[K", bar, line.substr(0, room)));
}

Json to_json(const analysis::Statement& statement) {
  return {{"statement", statement.name()},
          {"draws", statement.draws()},
          {"holds", statement.holds()},
          {"violations", statement.violations()},
          {"median_slack", statement.median_slack()}};
}

std::string statements_table(const std::vector<analysis::Statement>& statements) {
  const bool sources = std::ranges::any_of(
      statements, [](const analysis::Statement& each) { return !each.source().empty(); });
  std::vector<std::string> header{"statement", "draws", "violations", "median slack", "holds"};
  if (sources) header.insert(header.begin(), "source");
  Table table(header);
  for (const analysis::Statement& each : statements) {
    std::vector<std::string> row{
        each.name(), fmt::format("{}", each.draws()), fmt::format("{}", each.violations()),
        fmt::format("{:.3g}", each.median_slack()), each.holds() ? "yes" : "NO"};
    if (sources) row.insert(row.begin(), each.source());
    table.add(row);
  }
  return table.text();
}

}  // namespace nsimplex::cli

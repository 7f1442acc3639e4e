// `bench attention --levels`: the speed of every SIMD level, and why one is in use.

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_command.h"
#include "cli/output.h"
#include "kernels/cpu/shared/processor.h"
#include "kernels/cpu/shared/simd.h"
#include "support/executable.h"

namespace nsimplex::cli {
namespace {

// One thing to measure, by every level in turn.
struct Measurement {
  const char *dtype, *pass;
  int64_t dim;
};

constexpr std::array<Measurement, 8> kMeasurements{{{"float32", "forward", 64},
                                                    {"float32", "forward", 128},
                                                    {"float32", "backward", 64},
                                                    {"float32", "backward", 128},
                                                    {"bfloat16", "forward", 64},
                                                    {"bfloat16", "forward", 128},
                                                    {"bfloat16", "backward", 64},
                                                    {"bfloat16", "backward", 128}}};
constexpr size_t kColumns = 4;  // of one dtype

// A level is called faster than another from here on; medians of a few rounds differ by less.
constexpr double kFaster = 1.05;

// What this program prints with `arguments` in an environment with NSIMPLEX_SIMD=`level`. Its
// standard error is ours.
std::string output_at_level(const std::string& level, std::vector<std::string> arguments) {
  const std::string program = (executable_folder() / "nsimplex").string();
  arguments.insert(arguments.begin(), program);
  std::vector<std::string> settings{"NSIMPLEX_SIMD=" + level};
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("NSIMPLEX_SIMD=")) settings.emplace_back(*each);
  }
  const auto pointers = [](std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
  };

  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr,
                                pointers(arguments).data(), pointers(settings).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  while (error == 0) {
    const ssize_t count = read(ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (error == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (error != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("--levels: {} failed at level {}", program, level));
  }
  return text;
}

// The line of `bench attention` for one measurement.
Json measure(const LevelsOptions& options, const std::string& level, const Measurement& what) {
  const std::string line =
      output_at_level(level, {"bench",     "attention",
                              "--json",    "--order",
                              "2",         "--causal",
                              "--heads",   "1",
                              "--seq",     std::to_string(options.seq),
                              "--width",   std::to_string(what.dim),
                              "--dtype",   what.dtype,
                              "--product", "float32",
                              "--pass",    what.pass,
                              "--repeats", std::to_string(options.repeats),
                              "--threads", std::to_string(at::get_num_threads()),
                              "--seed",    std::to_string(options.seed)});
  return Json::parse(line);
}

// By levels, the measurements of each in the order of kMeasurements. A level's turn comes at once
// after the others' for the same measurement.
std::vector<std::vector<Json>> measure_all(const LevelsOptions& options,
                                           const std::vector<std::string>& levels) {
  std::vector<std::vector<Json>> lines(levels.size());
  ProgressBar bar("measurement", static_cast<int64_t>(levels.size() * kMeasurements.size()),
                  options.json);
  int64_t done = 0;
  for (const Measurement& what : kMeasurements) {
    for (size_t i = 0; i < levels.size(); ++i) {
      bar.update(done++, levels[i]);
      lines[i].push_back(measure(options, levels[i], what));
      interrupt::check();
    }
  }
  bar.update(done);
  bar.finish();
  return lines;
}

double rate(const Json& line) { return line["gflops"].get<double>(); }
double ratio(const Json& line) { return line["ratio"].get<double>(); }

// Sentences on levels that were faster than the one in use, by their ratios to the matrix product,
// which was measured beside each.
std::string faster_levels(const std::vector<std::string>& levels, const std::string& chosen,
                          const std::vector<std::vector<Json>>& lines) {
  const auto own =
      static_cast<size_t>(std::ranges::find(levels, chosen) - levels.begin()) % levels.size();
  std::string text;
  for (size_t m = 0; m < kMeasurements.size(); ++m) {
    for (size_t i = 0; i < levels.size(); ++i) {
      const double times = ratio(lines[i][m]) / ratio(lines[own][m]);
      if (times < kFaster) continue;
      text += fmt::format("{} {} at D = {}: {} was {:.2f} times as fast as {}\n",
                          kMeasurements[m].dtype, kMeasurements[m].pass, kMeasurements[m].dim,
                          levels[i], times, levels[own]);
    }
  }
  return text;
}

}  // namespace

int bench_levels(const LevelsOptions& options) {
  const std::string chosen = kernels::simd_level(), reason = kernels::simd_level_reason();
  std::vector<std::string> levels = kernels::simd_levels();
  if (std::ranges::find(levels, chosen) == levels.end()) levels.push_back(chosen);  // emulated
  const auto lines = measure_all(options, levels);

  if (options.json) {
    for (size_t i = 0; i < levels.size(); ++i) {
      for (const Json& line : lines[i]) {
        const bool in_use = levels[i] == chosen;
        Json level{{"level", levels[i]}, {"chosen", in_use}, {"reason", in_use ? reason : ""}};
        for (const char* field :
             {"processor", "family", "order", "dtype", "pass", "dim", "seq", "window", "threads",
              "milliseconds", "gflops", "sgemm_gflops", "ratio"}) {
          level[field] = line[field];
        }
        print_json_line("bench_level", level);
      }
    }
    return 0;
  }
  const std::string name = kernels::processor_name();
  print(fmt::format("processor: {}{}\n", name.empty() ? "" : name + ", ",
                    kernels::processor_family()));
  print(fmt::format("attention, order 2, causal, windows 32 x 512, seq {}, 1 head, {} thread{}\n",
                    options.seq, at::get_num_threads(), at::get_num_threads() == 1 ? "" : "s"));
  print("GFLOP/s, and in brackets their ratio to the fp32 matrix product in the same run\n");
  Table table(
      {"level", "dtype", "forward D 64", "forward D 128", "backward D 64", "backward D 128"});
  for (size_t i = 0; i < levels.size(); ++i) {
    for (size_t first = 0; first < kMeasurements.size(); first += kColumns) {
      std::vector<std::string> row{levels[i] + (levels[i] == chosen ? " *" : ""),
                                   kMeasurements[first].dtype};
      for (size_t m = first; m < first + kColumns; ++m) {
        row.push_back(fmt::format("{:.1f} ({:.2f})", rate(lines[i][m]), ratio(lines[i][m])));
      }
      table.add(row);
    }
  }
  print(table.text());
  print(fmt::format("* {} is in use: {}\n", chosen, reason));
  print(faster_levels(levels, chosen, lines));
  return 0;
}

}  // namespace nsimplex::cli

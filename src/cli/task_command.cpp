#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_lines.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "support/error.h"
#include "training/match3.h"

namespace nsimplex::cli {
namespace {

using training::Match3Labels;

struct Match3CommandOptions : CommonOptions {
  training::Match3Options task;
  std::vector<int64_t> orders = {1, 2};
  int64_t seeds = 1;
  std::string labels = "balanced";
};

// metrics.jsonl of a run directory: one line a point of a curve, one line a result. Each line is
// written through at once, so that an interrupted run keeps what it reached.
class Metrics {
 public:
  explicit Metrics(const Match3CommandOptions& options) {
    if (options.out.empty()) return;
    make_run_directory(options.out);
    std::ofstream(options.out + "/config.toml") << options.config_toml;
    file_.open(options.out + "/metrics.jsonl", std::ios::trunc);
    if (!file_) throw InputError(fmt::format("--out: cannot write {}/metrics.jsonl", options.out));
  }

  void write(const Json& line) {
    if (!file_.is_open()) return;
    file_ << line.dump() << std::endl;
    if (!file_) throw std::runtime_error("metrics.jsonl: cannot write (disk full?)");
  }

 private:
  std::ofstream file_;
};

training::Match3Result train(const Match3CommandOptions& options, int64_t order, uint64_t seed,
                             Metrics& metrics) {
  ProgressBar bar(fmt::format("order {} seed {}", order, seed), options.task.steps, options.json);
  std::string accuracy;  // empty before the first evaluation
  const auto report = [&](const training::Match3Point& point) {
    interrupt::check();
    if (!std::isnan(point.accuracy)) {
      accuracy = fmt::format("  accuracy {:.3f}", point.accuracy);
      metrics.write({{"order", order},
                     {"seed", seed},
                     {"step", point.step},
                     {"loss", point.loss},
                     {"accuracy", point.accuracy}});
    }
    bar.update(point.step, fmt::format("loss {:.3f}{}", point.loss, accuracy));
  };
  return training::train_match3(options.task, order, seed, report);
}

int run_match3(const Match3CommandOptions& options) {
  if (options.torch_device() != c10::Device(c10::kCPU)) {
    throw InputError("--device: task match3 runs on the CPU");
  }
  Match3CommandOptions complete = options;
  complete.task.labels =
      options.labels == "natural" ? Match3Labels::natural : Match3Labels::balanced;
  for (const int64_t order : options.orders) {
    complete.task.highest_order = std::max(complete.task.highest_order, order);
  }
  Metrics metrics(options);
  Table table({"order", "seed", "accuracy", "majority", "parameters", "seconds"});
  for (int64_t s = 0; s < options.seeds; ++s) {
    const uint64_t seed = options.seed + s;
    for (const int64_t order : options.orders) {
      const training::Match3Result result = train(complete, order, seed, metrics);
      const Json line{{"order", order},
                      {"seed", seed},
                      {"accuracy", result.accuracy},
                      {"majority", result.majority},
                      {"seconds", result.seconds},
                      {"parameters", result.parameters}};
      metrics.write(line);
      if (options.json) print_json_line(line);
      table.add({fmt::format("{}", order), fmt::format("{}", seed),
                 fmt::format("{:.4f}", result.accuracy), fmt::format("{:.4f}", result.majority),
                 fmt::format("{}", result.parameters), fmt::format("{:.1f}", result.seconds)});
    }
  }
  if (!options.json) print(table.text());
  return 0;
}

void add_match3_command(CLI::App& parent, Session& session) {
  auto options = std::make_shared<Match3CommandOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "match3",
       .summary =
           "Is there a pair j1, j2 with x_i + x_j1 + x_j2 = 0 mod M? Order 1 against order 2",
       .examples = "nsimplex task match3 --out runs/match3\n"
                   "nsimplex task match3 --seeds 3 --threads 1 --json\n"
                   "nsimplex task match3 --labels natural --order 2 --steps 3000"},
      options, run_match3);
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  training::Match3Options& task = options->task;
  command.add_option("--order", options->orders, "Orders to train, one after the other")
      ->delimiter(',')
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  command.add_option("--seeds", options->seeds, "Number of seeds, counted up from --seed")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--modulus", task.modulus, "M")->check(positive)->capture_default_str();
  command.add_option("--length", task.length, "Numbers in a sequence")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--labels", options->labels,
                  "balanced: half of each sequence's labels are 1; natural: all uniform sequences")
      ->check(CLI::IsMember({"balanced", "natural"}))
      ->capture_default_str();
  command.add_option("--dim", task.dim, "Width of the block")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--heads", task.heads, "Attention heads")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--batch", task.batch, "Fresh sequences a step")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--steps", task.steps, "Training steps")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--lr", task.learning_rate, "Peak learning rate")->capture_default_str();
  command.add_option("--eval-every", task.evaluate_every, "Steps between points of the curve")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--held-out", task.held_out, "Sequences to judge by, never trained on")
      ->check(positive)
      ->capture_default_str();
}

}  // namespace

void add_task_command(CLI::App& parent, Session& session) {
  CLI::App& group = add_group(parent, "task", "Small tasks that separate orders of attention");
  add_match3_command(group, session);
}

}  // namespace nsimplex::cli

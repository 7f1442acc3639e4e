// `nsimplex analyze smoothing`: the theorem on collapse and its lemmas put to the test, and
// collapse against depth.

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/analyze.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "cli/smoothing_depth.h"
#include "cli/smoothing_entries.h"
#include "cli/smoothing_flow.h"
#include "cli/smoothing_masked.h"
#include "cli/smoothing_masks.h"
#include "cli/smoothing_squash.h"
#include "cli/smoothing_theorem.h"
#include "cli/statements.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

constexpr int64_t kMostDeepOrders = 3;

struct SmoothingOptions : CommonOptions {
  int64_t draws = 250, order = 4;
  double time = 20;
  DepthSettings depth;
};

void record(RunLog& log, const Json& line, bool shown) {
  Json named{{"analysis", "smoothing"}};
  named.update(line);
  log.write("smoothing", named, shown);
}

void test_draws(const SmoothingOptions& options, Verdicts& verdicts, RunLog& log) {
  RandomStream random(options.seed);
  ProgressBar bar("draws", options.draws * options.order, options.json);
  for (int64_t order = 1, done = 0; order <= options.order; ++order) {
    for (int64_t i = 0; i < options.draws; ++i) {
      interrupt::check();
      record(log, test_theorem(order, random, verdicts), false);
      record(log, test_corollary(order, random, verdicts), false);
      record(log, test_derivatives(order, random, verdicts), false);
      if (order <= kMostDeepOrders) record(log, test_masked(order, random, verdicts), false);
      bar.update(++done);
    }
  }
}

std::vector<std::string> row_of(const DepthCurve& curve, int64_t layers) {
  std::vector<std::string> row{fmt::format("N = {}, {}", curve.arm.order, curve.arm.name),
                               curve.arm.radius < 0 ? "-" : fmt::format("{}", curve.arm.radius),
                               fmt::format("{:.3f}", curve.rate())};
  for (const int64_t layer : {int64_t{0}, layers / 4, layers / 2, layers}) {
    const auto place = static_cast<size_t>(layer);
    row.push_back(place < curve.ratio.size() ? fmt::format("{:.2e}", curve.ratio[place]) : "floor");
  }
  return row;
}

// The stacks, as a table of those in float64.
std::string watch_stacks(const SmoothingOptions& options, Verdicts& verdicts, RunLog& log) {
  const int64_t layers = options.depth.layers;
  Table table({"||res|| / ||X|| at layer", "radius", "rate", "0", fmt::format("{}", layers / 4),
               fmt::format("{}", layers / 2), fmt::format("{}", layers)});
  std::vector<DepthArm> arms;
  for (int64_t order = 1; order <= std::min(options.order, kMostDeepOrders); ++order) {
    for (const DepthArm& arm : depth_arms(order, options.depth, options.seed)) {
      arms.push_back(arm);
    }
  }
  std::vector<DepthCurve> curves;
  ProgressBar bar("stacks", std::ssize(arms), options.json);
  for (const DepthArm& arm : arms) {
    at::manual_seed(options.seed);  // the same weights in all arms of an order
    curves.push_back(watch_depth(arm, options.depth));
    record(log, to_json(curves.back()), true);
    if (arm.dtype == at::kDouble) table.add(row_of(curves.back(), layers));
    bar.update(std::ssize(curves));
  }
  test_curves(curves, verdicts);
  return table.text();
}

// What no theorem speaks of: distant tokens, continuous time, large entries.
void measure_beside(const SmoothingOptions& options, Verdicts& verdicts, RunLog& log) {
  const int64_t orders = std::min(options.order, kMostDeepOrders);
  const auto write = [&](const Json& line) { record(log, line, !line.contains("seed")); };
  ProgressBar bar("squashing, flows, entries", orders, options.json);
  for (int64_t order = 1; order <= orders; ++order) {
    at::manual_seed(options.seed);
    test_squashing(order, options.depth, options.seed, verdicts, write);
    test_flows({.order = order,
                .tokens = std::min<int64_t>(options.depth.tokens, 8),
                .channels = options.depth.channels,
                .time = options.time},
               verdicts, write);
    sweep_entries(order, options.depth, write);
    bar.update(order);
  }
}

int run_smoothing(const SmoothingOptions& options) {
  RunLog log(options);
  Verdicts verdicts(options.out);
  test_draws(options, verdicts, log);
  test_masks(options.seed, verdicts, [&](const Json& line) { record(log, line, false); });
  const std::string stacks = watch_stacks(options, verdicts, log);
  measure_beside(options, verdicts, log);
  for (const Json& line : verdicts.lines()) log.write("statement", line);
  if (!options.json) print(statements_table(verdicts.statements()) + "\n" + stacks);
  return 0;
}

}  // namespace

void add_analyze_smoothing(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<SmoothingOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "smoothing",
       .summary = "How fast attention makes all tokens one: theorems tested, and depth",
       .examples = "nsimplex analyze smoothing --threads 1\n"
                   "nsimplex analyze smoothing --draws 1000 --out runs/smoothing --json"},
      options, run_smoothing);
  const auto add = option_adder(command, "Smoothing");
  add("--draws", options->draws, "Random heads and tokens for each order")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add("--order", options->order, "Orders 1 to this one; stacks up to 3")
      ->check(CLI::Range(int64_t{1}, int64_t{4}));
  add("--tokens", options->depth.tokens, "Of the stacks of layers")
      ->check(CLI::Range(int64_t{8}, int64_t{64}));
  add("--dim", options->depth.channels, "Their channels")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  add("--time", options->time, "Until which the continuous-time model runs, in steps of 0.1")
      ->check(CLI::Range(1.0, 1e6));
  add("--layers", options->depth.layers, "Their depth")
      ->check(CLI::Range(int64_t{4}, int64_t{10000}));
}

}  // namespace nsimplex::cli

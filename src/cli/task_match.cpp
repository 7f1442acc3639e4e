#include "cli/task_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using training::MatchArm;
using training::MatchTuples;

std::string name_of(MatchTuples tuples) {
  switch (tuples) {
    case MatchTuples::dense:
      return "dense";
    case MatchTuples::topk:
      return "topk";
    case MatchTuples::path:
      return "path";
  }
  return "";
}

std::string task_name(const MatchCommandOptions& options) {
  return fmt::format("match{}", options.task.task.arity);
}

// What tells an arm from the others of its run.
void add_arm(Json& line, const MatchCommandOptions& options, const MatchArm& arm) {
  line["task"] = task_name(options);
  line["depth"] = arm.depth;
  line["sparse"] = name_of(arm.tuples);
  line["topk"] = arm.tuples == MatchTuples::dense ? Json() : Json(arm.topk);
}

Json result_line(const MatchCommandOptions& options, const MatchArm& arm, uint64_t seed,
                 const training::MatchResult& result) {
  Json line{{"order", arm.order},          {"seed", seed},
            {"accuracy", result.accuracy}, {"majority", result.majority},
            {"seconds", result.seconds},   {"parameters", result.parameters}};
  add_arm(line, options, arm);
  line["equal"] = options.equal;
  line["dim"] = result.size.dim;
  line["hidden"] = result.size.hidden;
  line["flops"] = result.flops;
  line["step_seconds"] = result.step_seconds;
  return line;
}

std::vector<std::string> result_row(const MatchArm& arm, uint64_t seed,
                                    const training::MatchResult& result) {
  const bool dense = arm.tuples == MatchTuples::dense;
  return {fmt::format("{}", arm.order),
          fmt::format("{}", arm.depth),
          dense ? "all" : fmt::format("{} {}", name_of(arm.tuples), arm.topk),
          fmt::format("{}", seed),
          fmt::format("{:.4f}", result.accuracy),
          fmt::format("{:.4f}", result.majority),
          fmt::format("{} x {}", result.size.dim, result.size.hidden),
          fmt::format("{}", result.parameters),
          fmt::format("{:.3f}", result.flops / 1e6),
          fmt::format("{:.1f}", result.step_seconds * 1e3),
          fmt::format("{:.1f}", result.seconds)};
}

// One seed of every arm.
std::vector<training::MatchResult> train(const MatchCommandOptions& options,
                                         const std::vector<MatchArm>& arms, uint64_t seed,
                                         RunLog& log) {
  const auto count = static_cast<int64_t>(arms.size());
  ProgressBar bar(fmt::format("{} seed {}", task_name(options), seed), options.task.steps * count,
                  options.json);
  double best = 0;
  const auto report = [&](size_t index, const training::MatchPoint& point) {
    interrupt::check();
    if (!std::isnan(point.accuracy)) {
      best = index == 0 ? point.accuracy : std::max(best, point.accuracy);
      Json line{{"order", arms[index].order},
                {"seed", seed},
                {"step", point.step},
                {"loss", point.loss},
                {"accuracy", point.accuracy}};
      add_arm(line, options, arms[index]);
      log.write("match_point", line, /*shown=*/false);
    }
    bar.update((point.step - 1) * count + static_cast<int64_t>(index) + 1,
               best == 0 ? "" : fmt::format("best accuracy {:.3f}", best));
  };
  return training::train_match(options.task, arms, seed, report);
}

}  // namespace

std::vector<MatchArm> match_arms(const MatchCommandOptions& options) {
  std::vector<MatchArm> arms;
  const auto add = [&](const MatchArm& arm) {
    const auto same = [&](const MatchArm& other) {
      return other.order == arm.order && other.depth == arm.depth && other.tuples == arm.tuples &&
             other.topk == arm.topk;
    };
    if (std::none_of(arms.begin(), arms.end(), same)) arms.push_back(arm);
  };
  for (const int64_t order : options.beside) {
    if (order > 0) add({.order = order});
  }
  for (const int64_t order : options.orders) {
    for (const int64_t depth : options.depths) {
      for (const std::string& sparse : options.sparse) {
        if (sparse == "dense") {
          add({.order = order, .depth = depth});
          continue;
        }
        // With one key axis paths and products are the same tuples.
        const bool path = sparse == "path" && order > 1;
        for (const int64_t k : options.topk) {
          add({.order = order,
               .depth = depth,
               .tuples = path ? MatchTuples::path : MatchTuples::topk,
               .topk = k});
        }
      }
    }
  }
  return arms;
}

int run_match(const MatchCommandOptions& options) {
  MatchCommandOptions complete = options;
  complete.task.task.labels = options.labels == "natural" ? training::MatchLabels::natural
                                                          : training::MatchLabels::balanced;
  complete.task.equal =
      options.equal == "flops" ? training::MatchEqual::flops : training::MatchEqual::parameters;
  complete.task.norm = options.norm == "none" ? HeadNorm::none
                       : options.norm == "qk" ? HeadNorm::qk
                                              : HeadNorm::qkv;
  const std::vector<MatchArm> arms = match_arms(options);
  for (const MatchArm& arm : arms) {
    complete.task.reference_order = std::max(complete.task.reference_order, arm.order);
  }
  training::check_match(complete.task, arms);  // before anything is written
  RunLog log(options);
  Table table({"order", "depth", "tuples", "seed", "accuracy", "majority", "width x hidden",
               "parameters", "Mflop/position", "ms/step", "seconds"});
  bool interrupted = false;
  for (int64_t s = 0; s < options.seeds && !interrupted; ++s) {
    const uint64_t seed = options.seed + s;
    std::vector<training::MatchResult> results;
    try {
      results = train(complete, arms, seed, log);
    } catch (const Interrupted&) {
      interrupted = true;  // the seeds before are whole
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const Json line = result_line(options, arms[i], seed, results[i]);
      log.write("match_result", line);
      table.add(result_row(arms[i], seed, results[i]));
    }
  }
  if (!options.json) print(table.text());
  if (interrupted) throw Interrupted();
  return 0;
}

}  // namespace nsimplex::cli

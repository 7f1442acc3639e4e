#include <fmt/format.h>

#include "causal/claims/robustness.h"
#include "cli/causal.h"
#include "cli/causal_claims.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace nsimplex::cli {
namespace {

struct RobustnessCommand : AngleOptions {
  causal::RobustnessOptions test;
};

void write(RunLog& log, const causal::Robustness& made) {
  for (const causal::Accuracy& each : made.accuracies) {
    log.write("robustness", {{"task", "robustness"},
                             {"row", "accuracy"},
                             {"first", each.first},
                             {"second", each.second},
                             {"exact", each.exact},
                             {"drawn", each.drawn}});
  }
  for (const causal::Bias& each : made.biases) {
    log.write("robustness", {{"task", "robustness"},
                             {"row", "bias"},
                             {"sigma", each.sigma},
                             {"noises", each.noises},
                             {"key", each.equal ? "query" : "drawn"},
                             {"score", each.score},
                             {"mean", each.mean},
                             {"deviation", each.deviation},
                             {"limit", each.limit}});
  }
  for (const causal::Distinction& each : made.distinctions) {
    log.write("robustness", {{"task", "robustness"},
                             {"row", "distinction"},
                             {"with_sine", each.with_sine},
                             {"without_sine", each.without_sine},
                             {"drawn", each.drawn},
                             {"error", each.error}});
  }
}

std::string biases_table(const causal::Robustness& made) {
  Table table({"key", "sigma", "noises", "score", "mean bias", "deviation", "limit"});
  for (const causal::Bias& each : made.biases) {
    table.add({each.equal ? "query" : "drawn", fmt::format("{:.2f}", each.sigma),
               fmt::format("{}", each.noises), fmt::format("{:.3f}", each.score),
               fmt::format("{:+.3f}", each.mean), fmt::format("{:.3f}", each.deviation),
               fmt::format("{:+.3f}", each.limit)});
  }
  return table.text();
}

int run_robustness(const RobustnessCommand& o) {
  causal::RobustnessOptions test = with_angles(o.test, o);
  RunLog log(o);
  causal::Robustness made;
  {
    ProgressBar bar("robustness", causal::robustness_steps(test), o.json);
    test.checkpoint = [&](int64_t done) {
      interrupt::check();
      bar.update(done);
    };
    made = causal::robustness(test);
  }
  write(log, made);
  report_claims(log, o, "robustness", made.claims);
  if (!o.json) print("\n" + biases_table(made));
  return 0;
}

}  // namespace

void add_causal_robustness(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<RobustnessCommand>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "robustness",
       .summary = "What noise of causal encodings does to attention scores (Fig. S1, S3)",
       .examples = "nsimplex causal robustness --out runs/robustness\n"
                   "nsimplex causal robustness --planes 3 --sigmas 0.3 --json"},
      options, run_robustness);
  add_angle_options(command, *options);
  const auto add = option_adder(command, "Test");
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 30);
  add("--sigmas", options->test.sigmas, "Noise of a coordinate")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  add("--pairs", options->test.pairs, "Queries with keys and points")->check(positive);
  add("--draws", options->test.draws, "Of the noise of a pair")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
  add("--repetitions", options->test.repetitions, "Of an average of noisy scores")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
}

}  // namespace nsimplex::cli

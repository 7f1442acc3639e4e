// The commands `lab attenuation` and `lab robustness`, which test claims about causal encodings.

#include <fmt/format.h>

#include <vector>

#include "analysis/statement.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/claims/attenuation.h"
#include "lab/claims/robustness.h"
#include "lab/experiments.h"

namespace nsimplex::cli {
namespace {

struct AngleOptions : CommonOptions {
  int64_t planes = 64;
  double scale = 0.78539816339744831;
  bool by_dimension = false;
};

// Adds --planes, --scale and --by-dimension.
void add_angle_options(CLI::App& command, AngleOptions& o) {
  const auto add = option_adder(command, "Angles");
  add("--planes", o.planes, "Number of coordinates of a point, and of channel pairs of a query")
      ->check(within(int64_t{2}, int64_t{1} << 16));
  add("--angle", o.scale, "Angle in radians for a coordinate of 1")->check(above_zero());
  command
      .add_flag("--by-dimension", o.by_dimension,
                "Multiply --angle by sqrt(planes), so that the angles keep their size")
      ->group("Angles");
}

// A test's own options, with planes, scale, by_dimension and seed from the command line.
template <class Test>
Test with_angles(Test test, const AngleOptions& options) {
  test.planes = options.planes;
  test.scale = options.scale;
  test.by_dimension = options.by_dimension;
  test.seed = options.seed;
  return test;
}

// Writes one line per statement: task, source, statement, draws, holds, violations, median_slack,
// share. Without --json it also prints a table of all.
void report_claims(RunLog& log, const CommonOptions& options, const std::string& task,
                   const std::vector<analysis::Statement>& claims) {
  for (const analysis::Statement& claim : claims) {
    Json line{{"task", task}, {"source", claim.source()}};
    line.update(to_json(claim));
    line["share"] = claim.share();
    log.write(task, line);
  }
  if (!options.json) print(statements_table(claims));
}

constexpr int64_t kPathPoints = 26;

struct AttenuationCommand : AngleOptions {
  causal::AttenuationOptions test;
  double distance = 3;
};

Json line_of(const char* row, const causal::AttenuationPoint& point) {
  return {{"task", "attenuation"},      {"row", row},
          {"first", point.first},       {"second", point.second},
          {"distance", point.distance}, {"gap", point.gap},
          {"bound", point.bound},       {"equal_score", point.equal_score}};
}

std::vector<double> range(double first, double last, int64_t count) {
  std::vector<double> values;
  for (int64_t k = 0; k < count; ++k) {
    values.push_back(first +
                     (last - first) * static_cast<double>(k) / static_cast<double>(count - 1));
  }
  return values;
}

int run_attenuation(const AttenuationCommand& o) {
  causal::AttenuationOptions test = with_angles(o.test, o);
  RunLog log(o);
  const auto surface = causal::attenuation_surface(
      test, range(0.3, 0.95, 14), range(test.least_distance, test.largest_distance, 17));
  for (const auto& point : surface) log.write("attenuation", line_of("surface", point));
  const auto path = causal::attenuation_path(test, o.distance, kPathPoints);
  for (const auto& point : path) log.write("attenuation", line_of("path", point));
  std::vector<analysis::Statement> claims;
  {
    ProgressBar bar("attenuation", causal::attenuation_draws(test), o.json);
    test.checkpoint = [&](int64_t done) {
      interrupt::check();
      bar.update(done);
    };
    claims = causal::attenuation_claims(test);
  }
  report_claims(log, o, "attenuation", claims);
  if (o.json) return 0;
  const causal::AttenuationPoint &from = path.front(), &to = path.back();
  print(fmt::format(
      "\nat distance {}, from antipodes to the origin: gap {:.3f} to {:.3f}, A+ {:.6f} to {:.6f} "
      "of that without a gap,\nk = q {:.6f} to {:.6f}\n",
      o.distance, from.gap, to.gap, from.bound, to.bound, from.equal_score, to.equal_score));
  double least = 1;
  for (const auto& point : surface) least = std::min(least, point.bound);
  print(fmt::format("over all norms and distances A+ falls by {:.3g} of that without a gap\n",
                    1 - least));
  return 0;
}

}  // namespace

void add_causal_attenuation(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<AttenuationCommand>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "attenuation",
       .summary =
           "Test whether causal angles weaken attention with distance and generality (Fig. S2)",
       .examples = "nsimplex lab attenuation --out runs/attenuation\n"
                   "nsimplex lab attenuation --planes 3 --draws 10000 --json"},
      options, run_attenuation);
  add_angle_options(command, *options);
  const auto add = option_adder(command, "Test");
  add("--draws", options->test.draws, "Draws per statement")
      ->check(within(int64_t{1}, int64_t{1} << 30));
  add("--distance", options->distance, "Distance of the pairs that move to the origin")
      ->check(within(0.01, 30.0));
  add("--least-distance", options->test.least_distance, "Smallest distance in the figure")
      ->check(within(0.01, 30.0));
  add("--largest-distance", options->test.largest_distance, "Largest distance in the figure")
      ->check(within(0.01, 30.0));
}

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
       .summary = "Measure how noise in causal encodings affects attention scores (Fig. S1, S3)",
       .examples = "nsimplex lab robustness --out runs/robustness\n"
                   "nsimplex lab robustness --planes 3 --sigmas 0.3 --json"},
      options, run_robustness);
  add_angle_options(command, *options);
  const auto add = option_adder(command, "Test");
  const auto positive = within(int64_t{1}, int64_t{1} << 30);
  add("--sigmas", options->test.sigmas, "Standard deviations of the noise per coordinate")
      ->delimiter(',')
      ->check(above_zero());
  add("--pairs", options->test.pairs, "Number of queries with keys and points")->check(positive);
  add("--draws", options->test.draws, "Noise draws per pair")
      ->check(within(int64_t{2}, int64_t{1} << 30));
  add("--repeats", options->test.repetitions, "Repetitions of each average of noisy scores")
      ->check(within(int64_t{2}, int64_t{1} << 30));
}

}  // namespace nsimplex::cli

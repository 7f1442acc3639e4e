#include <fmt/format.h>

#include "causal/claims/attenuation.h"
#include "cli/causal.h"
#include "cli/causal_claims.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace nsimplex::cli {
namespace {

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
  std::vector<causal::Claim> claims;
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
       .summary = "Do causal angles weaken attention with distance and generality? (Fig. S2)",
       .examples = "nsimplex causal attenuation --out runs/attenuation\n"
                   "nsimplex causal attenuation --planes 3 --draws 10000 --json"},
      options, run_attenuation);
  add_angle_options(command, *options);
  const auto add = option_adder(command, "Test");
  add("--draws", options->test.draws, "Of every statement")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add("--distance", options->distance, "Of the pairs that move to the origin")
      ->check(CLI::Range(0.01, 30.0));
  add("--least-distance", options->test.least_distance, "Of the pairs of the figure")
      ->check(CLI::Range(0.01, 30.0));
  add("--largest-distance", options->test.largest_distance, "Of the pairs of the figure")
      ->check(CLI::Range(0.01, 30.0));
}

}  // namespace nsimplex::cli

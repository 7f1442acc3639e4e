// Summarises a comparison of language models by loss differences and speed-ups over seeds.

#include "lab/language/comparison_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/feature_experiment.h"
#include "cli/output.h"
#include "cli/results.h"
#include "train/scores.h"

namespace nsimplex::cli {

namespace {

using training::Arm;
using training::ArmResult;
using training::Interval;

constexpr int64_t kSmoothing = 2;  // validations on each side
constexpr size_t kAllPairs = 3;    // up to this number of models, every pair is compared

std::string percent(double share) { return fmt::format("{:+.2f} %", 100 * share); }

double mean(const std::vector<training::SpeedUpPoint>& points) {
  double sum = 0.0;
  for (const auto& point : points) sum += point.speed_up;
  return sum / static_cast<double>(points.size());
}

// One model relative to another, with one number per seed.
struct Pair {
  size_t arm, over;
  std::vector<double> batch_speed_ups;       // mean over the steps
  std::vector<double> wall_clock_speed_ups;  // the same in seconds
};

// Compares one seed; speed-ups make sense only between runs on the same schedule.
void add_seed(Pair& pair, const ComparedSeed& run, const std::vector<Arm>& arms, RunLog& log) {
  const ArmResult &x = run.results[pair.arm], &y = run.results[pair.over];
  if (run.equal != "tokens") return;
  const auto points = training::speed_up(training::smooth(x.curve, kSmoothing),
                                         training::smooth(y.curve, kSmoothing));
  if (points.empty()) return;
  const double batchwise = mean(points);
  pair.batch_speed_ups.push_back(batchwise);
  pair.wall_clock_speed_ups.push_back((1 + batchwise) * y.seconds_per_step / x.seconds_per_step -
                                      1);
  for (const auto& point : points) {
    log.write("comparison_speed_up",
              {{"arm", arms[pair.arm].name},
               {"over", arms[pair.over].name},
               {"seed", run.seed},
               {"step", point.step},
               {"speed_up", point.speed_up}},
              /*shown=*/false);
  }
}

std::vector<Pair> pairs_of(size_t arms) {
  std::vector<Pair> pairs;
  for (size_t arm = 1; arm < arms; ++arm) {
    for (size_t over = 0; over < (arms <= kAllPairs ? arm : 1); ++over) {
      pairs.push_back({arm, over, {}, {}});
    }
  }
  return pairs;
}

// The metrics of all arms over the seeds of one kind of equality.
Results results_of(const std::vector<Arm>& arms, const std::vector<ComparedSeed>& runs,
                   const std::string& equal) {
  Results results;
  for (const ComparedSeed& run : runs) {
    if (run.equal != equal) continue;
    for (size_t i = 0; i < arms.size(); ++i) {
      results.add(arms[i].name, Results::trial_of(run.seed),
                  scores_of(to_json(arms[i], run, run.results[i])));
    }
  }
  return results;
}

void add_arms(Table& table, const std::vector<Arm>& arms, const Results& results,
              const std::string& equal) {
  for (const Arm& arm : arms) {
    const auto shown = [&](const char* metric, int digits, double scale = 1.0) -> std::string {
      const double value = scale * results.spread(arm.name, metric).mean;
      return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
    };
    table.add({arm.name, equal, fmt::format("{:.0f}", results.values(arm.name, "parameters")[0]),
               shown("steps", 0), results.cell(arm.name, "val_loss", 4),
               shown("seconds_per_step", 1, 1e3), shown("tokens_per_second", 0),
               shown("retained_mass", 3)});
  }
}

}  // namespace

Json to_json(const Arm& arm, const ComparedSeed& run, const training::ArmPoint& point) {
  Json json{{"arm", arm.name},
            {"seed", run.seed},
            {"equal", run.equal},
            {"step", point.step},
            {"train_loss", point.train_loss},
            {"val_loss", point.val_loss},
            {"seconds", point.seconds}};
  if (point.auxiliary_loss) json["auxiliary_loss"] = *point.auxiliary_loss;
  return json;
}

Json to_json(const Arm& arm, const ComparedSeed& run, const ArmResult& result) {
  Json json{{"arm", arm.name},
            {"seed", run.seed},
            {"equal", run.equal},
            {"steps", result.steps},
            {"parameters", result.parameters},
            {"val_loss", result.curve.back().loss},
            {"seconds_per_step", result.seconds_per_step},
            {"tokens_per_second", result.tokens_per_second}};
  if (result.auxiliary_loss) json["auxiliary_loss"] = *result.auxiliary_loss;
  if (result.retained_mass) json["retained_mass"] = *result.retained_mass;
  return json;
}

std::string summarize(const std::vector<Arm>& arms, const std::vector<ComparedSeed>& runs,
                      RunLog& log) {
  std::vector<std::string> kinds;
  for (const ComparedSeed& run : runs) {
    if (std::find(kinds.begin(), kinds.end(), run.equal) == kinds.end()) {
      kinds.push_back(run.equal);
    }
  }
  Table means({"arm", "equal", "weights", "steps", "val loss", "ms per step", "tokens/s", "mass"});
  Table differences({"arm over arm", "equal", "seeds", "difference of val loss [95 %]",
                     "batch-wise speed-up [95 %]", "wall clock"});
  for (const std::string& equal : kinds) {
    const Results results = results_of(arms, runs, equal);
    add_arms(means, arms, results, equal);
    for (Pair& pair : pairs_of(arms.size())) {
      for (const ComparedSeed& run : runs) {
        if (run.equal == equal) add_seed(pair, run, arms, log);
      }
      const Interval loss = training::confidence_interval(
          results.differences(arms[pair.arm].name, arms[pair.over].name, "val_loss"));
      const Interval batch = training::confidence_interval(pair.batch_speed_ups);
      const Interval wall = training::confidence_interval(pair.wall_clock_speed_ups);
      Json line{{"arm", arms[pair.arm].name}, {"over", arms[pair.over].name}, {"equal", equal},
                {"seeds", loss.count},        {"difference", loss.mean},      {"low", loss.low},
                {"high", loss.high}};
      if (batch.count > 0) {
        line["batch_speed_up"] = batch.mean;
        line["batch_low"] = batch.low;
        line["batch_high"] = batch.high;
        line["wall_clock_speed_up"] = wall.mean;
      }
      log.write("comparison_pair", line);
      differences.add(
          {fmt::format("{} over {}", arms[pair.arm].name, arms[pair.over].name), equal,
           fmt::format("{}", loss.count),
           interval_text(loss, [](double value) { return fmt::format("{:+.4f}", value); }),
           interval_text(batch, percent), batch.count > 0 ? percent(wall.mean) : "-"});
    }
  }
  return means.text() + "\n" + differences.text();
}

}  // namespace nsimplex::cli

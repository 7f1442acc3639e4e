// The commands `lab lm-compare` and `lab lm-scaling`: paired training, and loss against size.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "cli/lm_command.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/experiments.h"
#include "lab/language/comparison_options.h"
#include "lab/language/comparison_summary.h"
#include "nn/model_names.h"
#include "support/error.h"
#include "train/scores.h"

namespace nsimplex::cli {
namespace {

constexpr int64_t kTimedSteps = 15;  // steps that measure the speed for equal time

struct CompareOptions : ComparisonOptions {
  std::vector<std::string> equal = {"tokens", "time"};
  std::string size = "small";

  CompareOptions() {
    arms = {"ordinary", "window", "topk"};
    seeds = 3;
  }
};

// Figure 8 of Pappone, "Beyond attention as a graph": nanoGPT with 124 million weights, layers 4, 8
// and 12 2-simplicial, 60 million tokens. Batch, rate and data are not published; these are
// nanoGPT's rate and a batch that fits one machine. Options that were given stay. The others become
// defaults, also in config.toml: when it is read back, they count as given.
void apply_fig8(CLI::App& command, CompareOptions& o) {
  const auto set = [&](const char* flag, auto& value, const auto& of_figure) {
    CLI::Option* option = command.get_option(flag);
    if (option->count() > 0) return;
    value = of_figure;
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) {
      option->default_str(std::string(name_of(value)));
    } else {
      option->capture_default_str();
    }
  };
  set("--layers", o.model.layers, 12);
  set("--heads", o.model.heads, 12);
  set("--width", o.model.dim, 768);
  set("--context", o.model.context, 512);
  set("--vocabulary", o.vocabulary, 50304);
  set("--mlp", o.model.mlp, Activation::gelu);
  set("--arms", o.arms, std::vector<std::string>{"ordinary", "ordinary:wide", "window", "topk"});
  set("--batch", o.training.batch, 12);
  set("--accumulate", o.training.accumulate, 4);
  set("--steps", o.training.steps, 2441);
  set("--lr", o.training.lr, 6e-4);
  set("--min-lr", o.training.min_lr, 6e-5);
  set("--warmup", o.training.warmup, 100);
  set("--beta2", o.training.beta2, 0.95);
  set("--eval-every", o.training.eval_every, 25);
}

// Numbers of steps per model, so that all take as long as the fastest one takes for training.steps.
std::vector<training::Arm> equal_in_time(std::vector<training::Arm> arms, const CompareOptions& o,
                                         const training::Corpus& corpus) {
  const std::vector<double> seconds =
      training::time_steps(arms, o.training, corpus, o.torch_device(), kTimedSteps);
  const double least = *std::min_element(seconds.begin(), seconds.end());
  for (size_t i = 0; i < arms.size(); ++i) {
    const double steps = static_cast<double>(o.training.steps) * least / seconds[i];
    arms[i].steps = std::max<int64_t>(std::llround(steps), 1);
  }
  return arms;
}

ComparedSeed train_seed(const std::vector<training::Arm>& arms, const CompareOptions& o,
                        const training::Corpus& corpus, const std::string& equal, uint64_t seed,
                        RunLog& log) {
  ComparedSeed run{equal, seed, {}};
  training::TrainingOptions training = o.training;
  training.seed = seed;
  const auto write = [&](const training::ArmPoint& point) {
    log.write("comparison_point", to_json(arms[point.arm], run, point), /*shown=*/false);
  };
  const std::string label = fmt::format("equal {} seed {}", equal, seed);
  run.results = train_arms_shown(label, arms, training, corpus, o, write);
  for (size_t i = 0; i < arms.size(); ++i)
    log.write("comparison_result", to_json(arms[i], run, run.results[i]));
  return run;
}

int run_compare(const CompareOptions& given) {
  CompareOptions o = given;
  complete(o);
  const OpenCorpus opened = open_corpus(o);
  const training::Corpus& corpus = opened.corpus;
  const auto arms = comparison_arms(o.arms, language_model_options(o, opened.vocabulary));
  RunLog log(o);
  if (!o.json) print(describe(corpus, o.training, o.model.context));

  std::vector<ComparedSeed> runs;
  const auto report = [&] {
    if (runs.empty()) return;
    const std::string text = summarize(arms, runs, log);
    if (!o.json) print(text);
  };
  try {
    for (const std::string& equal : o.equal) {
      const auto timed = equal == "time" ? equal_in_time(arms, o, corpus) : arms;
      for (int64_t s = 0; s < o.seeds; ++s) {
        runs.push_back(train_seed(timed, o, corpus, equal, o.seed + s, log));
      }
    }
  } catch (const Interrupted&) {
    report();  // for the complete seeds
    throw;
  }
  report();
  return 0;
}

}  // namespace

void add_lm_compare(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "lm-compare",
       .summary = "Train several models in turns on the same batches and compare them in pairs",
       .examples =
           "nsimplex lab lm-compare --text shakespeare.txt --out runs/compare\n"
           "nsimplex lab lm-compare --text shakespeare.txt --arms indexers --equal tokens\n"
           "nsimplex lab lm-compare --text src --arms window,topk:light:loss,path --seeds 5\n"
           "nsimplex lab lm-compare --size fig8 --tokens train.bin val.bin --device cuda",
       .acts = {.device = true}},
      options, run_compare);
  CompareOptions& o = *options;
  add_comparison_flags(command, o);
  command
      .add_option("--equal", o.equal,
                  "Quantity that is equal for all models: tokens (the same steps) or time (as many "
                  "steps as "
                  "fit into the time of the fastest one)")
      ->delimiter(',')
      ->check(one_of({"tokens", "time"}))
      ->capture_default_str();
  command
      .add_option("--size", o.size,
                  "Size of the models: small (minutes on two cores) or fig8 (nanoGPT with 124M "
                  "weights, for a GPU)")
      ->check(one_of({"small", "fig8"}))
      ->each([&command, &o](const std::string& size) {
        if (size == "fig8") apply_fig8(command, o);
      })
      ->capture_default_str();
}

namespace {

struct LanguageScalingOptions : ComparisonOptions {
  std::vector<int64_t> widths = {64, 96, 144};
  bool published = false;

  LanguageScalingOptions() {
    arms = {"ordinary", "window"};
    training.eval_every = 0;
  }
};

// -log L = alpha log N + beta.
training::Line fit(const std::vector<double>& sizes, const std::vector<double>& losses) {
  std::vector<double> x, y;
  for (const double size : sizes) x.push_back(std::log(size));
  for (const double loss : losses) y.push_back(-std::log(loss));
  return training::fit_line(x, y);
}

Json json_of_point(const std::string& source, const std::string& arm, const training::Line& line) {
  return {{"source", source},
          {"arm", arm},
          {"alpha", line.slope},
          {"beta", line.intercept},
          {"r_squared", line.r_squared}};
}

std::string relative_percent(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

void refit_published(RunLog& log, bool json) {
  Table table({"task", "arm", "alpha refitted", "beta", "R^2", "alpha printed", "gain in alpha",
               "printed gain"});
  double refitted = 0.0, printed = 0.0;  // for the transformer, which comes before its rival
  const Json known = Json::parse(kExperimentFigures).at("lm-scaling");
  const auto sizes = known.at("sizes").get<std::vector<double>>();
  for (const Json& row : known.at("rows")) {
    const auto task = row.at("task").get<std::string>(), arm = row.at("arm").get<std::string>();
    const auto alpha = row.at("alpha").get<double>();
    const training::Line line = fit(sizes, row.at("losses").get<std::vector<double>>());
    Json object = json_of_point("published", arm, line);
    object["task"] = task;
    object["printed_alpha"] = alpha;
    object["printed_beta"] = row.at("beta");
    log.write("scaling_fit", object);
    const bool rival = arm != "transformer";
    table.add({task, arm, fmt::format("{:.4f}", line.slope), fmt::format("{:.4f}", line.intercept),
               fmt::format("{:.4f}", line.r_squared), fmt::format("{:.4f}", alpha),
               rival ? relative_percent(line.slope / refitted) : "",
               rival ? relative_percent(alpha / printed) : ""});
    if (!rival) refitted = line.slope, printed = alpha;
  }
  if (json) return;
  print("Published losses of 1, 2 and 3.5 billion active weights, refitted:\n" + table.text());
}

void check_widths(const LanguageScalingOptions& o) {
  if (o.widths.size() < 3) {
    throw InputError(fmt::format(
        "--widths: expected at least 3, since two always lie on a line, got {}", o.widths.size()));
  }
  for (const int64_t width : o.widths) {
    if (width < 1 || width % o.model.heads != 0) {
      throw InputError(
          fmt::format("--widths: expected multiples of {} heads, got {}", o.model.heads, width));
    }
  }
}

void sweep(LanguageScalingOptions o, const OpenCorpus& opened, RunLog& log) {
  if (!o.json) print(describe(opened.corpus, o.training, o.model.context));

  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> points;
  Table table({"arm", "width", "weights", "val loss"});
  for (const int64_t width : o.widths) {
    o.model.dim = width;
    const auto arms = comparison_arms(o.arms, language_model_options(o, opened.vocabulary));
    std::vector<double> sums(arms.size(), 0.0);
    std::vector<training::ArmResult> results;
    for (int64_t s = 0; s < o.seeds; ++s) {
      const uint64_t seed = o.seed + static_cast<uint64_t>(s);
      o.training.seed = seed;
      results = train_arms_shown(fmt::format("width {} seed {}", width, seed), arms, o.training,
                                 opened.corpus, o);
      for (size_t i = 0; i < arms.size(); ++i) {
        const double loss = results[i].curve.back().loss;
        sums[i] += loss;
        log.write("scaling_point", {{"arm", arms[i].name},
                                    {"width", width},
                                    {"seed", seed},
                                    {"parameters", results[i].parameters},
                                    {"val_loss", loss},
                                    {"seconds_per_step", results[i].seconds_per_step}});
      }
    }
    for (size_t i = 0; i < arms.size(); ++i) {
      const double loss = sums[i] / static_cast<double>(o.seeds);
      auto& [sizes, losses] = points[arms[i].name];
      sizes.push_back(static_cast<double>(results[i].parameters));
      losses.push_back(loss);
      table.add({arms[i].name, fmt::format("{}", width), fmt::format("{}", results[i].parameters),
                 fmt::format("{:.4f}", loss)});
    }
  }
  Table fits({"arm", "alpha", "beta", "R^2"});
  for (const auto& [arm, curve] : points) {
    const training::Line line = fit(curve.first, curve.second);
    log.write("scaling_fit", json_of_point("sweep", arm, line));
    fits.add({arm, fmt::format("{:.4f}", line.slope), fmt::format("{:.4f}", line.intercept),
              fmt::format("{:.4f}", line.r_squared)});
  }
  if (o.json) return;
  print(table.text() + "\n" + fits.text());
  print(
      "These sizes lie far below two billion active weights, where the published curves cross.\n");
}

int run_scaling(const LanguageScalingOptions& given) {
  LanguageScalingOptions o = given;
  if (o.published) {
    RunLog log(o);
    refit_published(log, o.json);
    return 0;
  }
  check_widths(o);
  complete(o);
  const OpenCorpus opened = open_corpus(o);  // before anything is written
  RunLog log(o);
  refit_published(log, o.json);
  sweep(std::move(o), opened, log);
  return 0;
}

}  // namespace

void add_lm_scaling(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<LanguageScalingOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "lm-scaling",
       .summary = "Fit loss against size, for published figures and for a sweep of widths",
       .examples = "nsimplex lab lm-scaling --published\n"
                   "nsimplex lab lm-scaling --text shakespeare.txt --out runs/scaling\n"
                   "nsimplex lab lm-scaling --text src --widths 64,128,256,512 --seeds 3",
       .acts = {.device = true}},
      options, run_scaling);
  LanguageScalingOptions& o = *options;
  command.add_flag("--published", o.published,
                   "Train nothing, and only fit the published figures again");
  command.add_option("--widths", o.widths, "Widths of the models; they replace --width")
      ->delimiter(',')
      ->capture_default_str();
  add_comparison_flags(command, o);
}

}  // namespace nsimplex::cli

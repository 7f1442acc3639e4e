#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/comparison_arms.h"
#include "cli/comparison_options.h"
#include "cli/comparison_summary.h"
#include "cli/comparison_training.h"
#include "cli/interrupt.h"
#include "cli/lm.h"
#include "cli/output.h"

namespace nsimplex::cli {
namespace {

constexpr int64_t kTimedSteps = 15;  // by which equal time is measured out

struct CompareOptions : ComparisonOptions {
  std::vector<std::string> equal = {"tokens", "time"};
  std::string size = "small";

  CompareOptions() {
    arms = {"ordinary", "window", "topk"};
    seeds = 3;
  }
};

// Figure 8 of Pappone, "Beyond attention as a graph": nanoGPT of 124 million weights, layers 4, 8
// and 12 2-simplicial, 60 million tokens. Batch, rate and data are not published; these are
// nanoGPT's rate and a batch that one machine holds.
// What was asked for stays. The rest is the default from then on, in config.toml as well: read
// back, it is asked for.
void apply_fig8(CLI::App& command, CompareOptions& o) {
  const auto set = [&](const char* flag, auto& value, const auto& of_figure) {
    CLI::Option* option = command.get_option(flag);
    if (option->count() > 0) return;
    value = of_figure;
    option->capture_default_str();
  };
  set("--layers", o.model.layers, 12);
  set("--heads", o.model.heads, 12);
  set("--dim", o.model.dim, 768);
  set("--context", o.model.context, 512);
  set("--vocabulary", o.vocabulary, 50304);
  set("--mlp", o.mlp, "gelu");
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

// Steps of each arm, so that all take as long as the fastest one takes for training.steps.
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
    report();  // of the seeds that are whole
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
      {.name = "compare",
       .summary = "Train several models by turns on the same batches; paired differences",
       .examples = "nsimplex lm compare --text shakespeare.txt --out runs/compare\n"
                   "nsimplex lm compare --text shakespeare.txt --arms indexers --equal tokens\n"
                   "nsimplex lm compare --text src --arms window,topk:light:loss,path --seeds 5\n"
                   "nsimplex lm compare --size fig8 --tokens train.bin val.bin --device cuda",
       .acts = {.device = true}},
      options, run_compare);
  CompareOptions& o = *options;
  add_comparison_flags(command, o);
  command
      .add_option("--equal", o.equal,
                  "tokens: all arms the same steps; time: as many as fit the fastest one's time")
      ->delimiter(',')
      ->check(CLI::IsMember({"tokens", "time"}))
      ->capture_default_str();
  command
      .add_option("--size", o.size,
                  "small: minutes on two cores; fig8: nanoGPT of 124M weights, for a GPU")
      ->check(CLI::IsMember({"small", "fig8"}))
      ->each([&command, &o](const std::string& size) {
        if (size == "fig8") apply_fig8(command, o);
      })
      ->capture_default_str();
}

}  // namespace nsimplex::cli

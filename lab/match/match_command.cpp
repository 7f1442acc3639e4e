// The commands that train models on the Match tasks of two to four numbers.

#include "lab/match/match_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/common/attention_names.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/run_folder.h"
#include "lab/experiments.h"
#include "nn/model_names.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

using training::MatchArm;
using training::MatchTuples;

std::string task_name(const MatchCommandOptions& options) {
  return fmt::format("match{}", options.task.task.arity);
}

std::string tuples_of(const MatchArm& arm) {
  if (arm.tuples == MatchTuples::dense) return "all";
  return fmt::format("{} {}", name_of(arm.tuples), arm.topk);
}

std::string form_of(const MatchArm& arm) {
  return fmt::format("{}{}", name_of(arm.form), arm.rotary ? ", rotary" : "");
}

// The arm's name among the results.
std::string label_of(const MatchArm& arm) {
  return fmt::format("order {}, depth {}, {}, {}", arm.order, arm.depth, tuples_of(arm),
                     form_of(arm));
}

// What tells an arm from the others of its run.
void add_arm(Json& line, const MatchCommandOptions& options, const MatchArm& arm) {
  line["task"] = task_name(options);
  line["depth"] = arm.depth;
  line["sparse"] = name_of(arm.tuples);
  line["topk"] = arm.tuples == MatchTuples::dense ? Json() : Json(arm.topk);
  line["form"] = name_of(arm.form);
  line["rotary"] = arm.rotary;
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

// One row per arm, with means over the seeds.
std::string table_of(const std::vector<MatchArm>& arms, const Results& results) {
  Table table({"order", "depth", "tuples", "form", "seeds", "accuracy", "majority",
               "width x hidden", "parameters", "Mflop/position", "ms/step", "seconds"});
  for (const MatchArm& arm : arms) {
    const std::string name = label_of(arm);
    if (!results.has(name)) continue;
    const auto mean = [&](const char* metric) { return results.spread(name, metric).mean; };
    table.add({fmt::format("{}", arm.order), fmt::format("{}", arm.depth), tuples_of(arm),
               form_of(arm), fmt::format("{}", results.trials(name)),
               results.cell(name, "accuracy", 4), fmt::format("{:.4f}", mean("majority")),
               fmt::format("{:.0f} x {:.0f}", mean("dim"), mean("hidden")),
               fmt::format("{:.0f}", mean("parameters")),
               fmt::format("{:.3f}", mean("flops") / 1e6),
               fmt::format("{:.1f}", mean("step_seconds") * 1e3),
               fmt::format("{:.1f}", mean("seconds"))});
  }
  return table.text();
}

// Trains one seed of every model.
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
  const auto add = [&](MatchArm arm) {
    for (const std::string& form : options.forms) {
      arm.form = parse_name<Form>("--form", form);
      arm.rotary = options.rotary && (arm.order == 1 || arm.form == Form::determinant);
      const auto same = [&](const MatchArm& other) { return label_of(other) == label_of(arm); };
      if (std::none_of(arms.begin(), arms.end(), same)) arms.push_back(arm);
    }
  };
  for (const int64_t order : options.beside) {
    if (order > 0) add({.order = order});
  }
  for (const int64_t order : options.orders) {
    for (const int64_t depth : options.depths) {
      for (const std::string& sparse : options.sparse) {
        const MatchTuples tuples = parse_name<MatchTuples>("--sparse", sparse);
        if (tuples == MatchTuples::dense) {
          add({.order = order, .depth = depth});
          continue;
        }
        // With one key axis, paths and products are the same tuples.
        const bool path = tuples == MatchTuples::path && order > 1;
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
  complete.task.task.labels = parse_name<training::MatchLabels>("--labels", options.labels);
  complete.task.equal = parse_name<training::MatchEqual>("--equal", options.equal);
  complete.task.norm = parse_name<HeadNorm>("--norm", options.norm);
  const std::vector<MatchArm> arms = match_arms(options);
  for (const MatchArm& arm : arms) {
    complete.task.reference_order = std::max(complete.task.reference_order, arm.order);
  }
  training::check_match(complete.task, arms);  // before anything is written
  RunLog log(options);
  Results results;
  bool interrupted = false;
  for (int64_t s = 0; s < options.seeds && !interrupted; ++s) {
    const uint64_t seed = options.seed + s;
    std::vector<training::MatchResult> trained;
    try {
      trained = train(complete, arms, seed, log);
    } catch (const Interrupted&) {
      interrupted = true;  // the seeds before are complete
    }
    for (size_t i = 0; i < trained.size(); ++i) {
      const Json line = result_line(options, arms[i], seed, trained[i]);
      log.write("match_result", line);
      results.add(label_of(arms[i]), Results::trial_of(seed), scores_of(line));
    }
  }
  if (!options.json) print(table_of(arms, results));
  if (interrupted) throw Interrupted();
  return 0;
}

namespace {

constexpr int64_t kLargestModulus = 1 << 20;  // largest embedding that fits into memory

// Text of a command, with {0} for its name.
struct MatchText {
  int64_t arity;
  std::string summary, examples;
};

const std::vector<MatchText>& match_texts() {
  static const std::vector<MatchText> texts{
      {2, "Train models on Match2: is there a j with x_i + x_j = 0 mod M?",
       "nsimplex lab {0} --order 1 --sparse dense,topk --topk 1,2,4 --threads 1\n"
       "nsimplex lab {0} --order 1,2,3 --out runs/{0}"},
      {3, "Train models on Match3: is there a pair j1, j2 with x_i + x_j1 + x_j2 = 0 mod M?",
       "nsimplex lab {0} --out runs/{0}\n"
       "nsimplex lab {0} --seeds 3 --threads 1 --json\n"
       "nsimplex lab {0} --labels natural --order 2 --steps 3000\n"
       "nsimplex lab {0} --order 2 --sparse dense,topk,path --topk 2,4,6 --out runs/sparse\n"
       "nsimplex lab {0} --order 1 --depth 1,2,3,4,6 --beside 2 --equal flops --out runs/depth"},
      {4, "Train models on Match4: is there a triple with x_i + x_j1 + x_j2 + x_j3 = 0 mod M?",
       "nsimplex lab {0} --order 1,2,3 --threads 1 --out runs/{0}\n"
       "nsimplex lab {0} --modulus 89 --steps 4000"}};
  return texts;
}

// Adds the options that define the compared models.
void add_arm_options(CLI::App& command, MatchCommandOptions& options) {
  const auto positive = within(int64_t{1}, int64_t{1} << 40);
  command.add_option("--order", options.orders, "Orders to train")
      ->delimiter(',')
      ->check(within(1, 4))
      ->capture_default_str();
  command.add_option("--depth", options.depths, "Numbers of layers, each trained with every order")
      ->delimiter(',')
      ->check(within(1, 64))
      ->capture_default_str();
  command
      .add_option("--sparse", options.sparse,
                  "Tuples, each trained with every order and depth: dense, or topk and path (of "
                  "keys that an indexer chooses; the same for order 1)")
      ->delimiter(',')
      ->check(one_of(names_of<MatchTuples>()))
      ->capture_default_str();
  command
      .add_option("--topk", options.topk,
                  "Chosen keys per position, each trained with topk and path")
      ->delimiter(',')
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--form", options.forms,
                  "Scores, each trained with every model: product or determinant, whose widths are "
                  "multiples of heads x (order + 1)")
      ->delimiter(',')
      ->check(one_of(names_of<Form>()))
      ->capture_default_str();
  command.add_flag("--rotary", options.rotary,
                   "Rotary positions in models of order 1 and of form determinant");
  command
      .add_option("--beside", options.beside,
                  "Also train a model of one dense layer of each of these orders; 0: none")
      ->delimiter(',')
      ->check(within(0, 4))
      ->capture_default_str();
  command
      .add_option("--equal", options.equal,
                  "Quantity that all models share with one dense layer of the highest order (at "
                  "least 2): parameters, or flops per training step")
      ->check(one_of(names_of<training::MatchEqual>()))
      ->capture_default_str();
  command.add_option("--seeds", options.seeds, "Number of seeds, counted up from --seed")
      ->check(positive)
      ->capture_default_str();
}

// Adds the options of the task, the reference model and its training.
void add_training_options(CLI::App& command, MatchCommandOptions& options) {
  const auto positive = within(int64_t{1}, int64_t{1} << 40);
  training::MatchOptions& task = options.task;
  command.add_option("--modulus", task.task.modulus, "M")
      ->check(within(int64_t{1}, kLargestModulus))
      ->capture_default_str();
  command.add_option("--length", task.task.length, "Numbers in a sequence")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--labels", options.labels,
                  "Sequences: balanced (half of each sequence's labels are 1) or natural (uniform)")
      ->check(one_of(names_of<training::MatchLabels>()))
      ->capture_default_str();
  command.add_option("--width", task.dim, "Width of the widest model")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--heads", task.heads, "Attention heads")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--norm", options.norm, "RMS-normalise heads: none, qk or qkv")
      ->check(one_of(names_of<HeadNorm>()))
      ->capture_default_str();
  command.add_flag("--circles", task.circles,
                   "Start with numbers on circles: channels cos and sin of 2 pi f x / M");
  command.add_option("--batch", task.batch, "New sequences per step")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--steps", task.steps, "Training steps")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--indexer-warmup", task.indexer_warmup,
                  "Number of first steps in which layers that choose keys are dense and their "
                  "indexers learn from all keys")
      ->check(at_least_zero())
      ->capture_default_str();
  command.add_option("--lr", task.learning_rate, "Peak learning rate")->capture_default_str();
  command.add_option("--eval-every", task.evaluate_every, "Steps between points of the curve")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--test", task.held_out, "Number of test sequences, which are never trained on")
      ->check(positive)
      ->capture_default_str();
}

void add_match_command(CLI::App& parent, Session& session, const MatchText& text) {
  auto options = std::make_shared<MatchCommandOptions>();
  options->task.task = training::match_task(text.arity);
  if (text.arity == 4) options->orders = {1, 2, 3};
  const std::string name = fmt::format("match{}", text.arity);
  CLI::App& command = add_command(parent, session,
                                  {.name = name,
                                   .summary = text.summary,
                                   .examples = fmt::format(fmt::runtime(text.examples), name)},
                                  options, run_match);
  add_arm_options(command, *options);
  add_training_options(command, *options);
}

}  // namespace

void add_match_commands(CLI::App& parent, Session& session) {
  for (const MatchText& text : match_texts()) add_match_command(parent, session, text);
}

}  // namespace nsimplex::cli

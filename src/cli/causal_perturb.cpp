// The command `causal task perturb`: the prediction of unseen interventions with every encoding.

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "causal/option_names.h"
#include "cli/causal_study.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/perturbed_table.h"
#include "cli/results.h"
#include "support/error.h"
#include "support/stopwatch.h"
#include "train/optimizer.h"
#include "train/perturbation_task.h"

namespace nsimplex::cli {
namespace {

struct PerturbOptions : FeatureExperimentOptions {
  training::PerturbationOptions task{.simulation = {.graph = CausalGraph::scale_free,
                                                    .nodes = 40,
                                                    .observations = 2000,
                                                    .mechanism = CausalMechanism::mlp}};
  std::string mechanism = "mlp";
  PerturbedTableOptions table;
};

// Options of simulated tables have no effect on a given one. Options from config.toml are present
// with their defaults, so only the values show which were set.
void refuse_simulation_options(const PerturbOptions& given) {
  const PerturbOptions plain;
  const auto refuse = [](bool changed, const char* option) {
    if (changed) throw InputError(fmt::format("{}: expected no TABLE, got one", option));
  };
  const CausalSimulationOptions &a = given.task.simulation, &b = plain.task.simulation;
  refuse(a.nodes != b.nodes, "--nodes");
  refuse(a.degree != b.degree, "--degree");
  refuse(given.mechanism != plain.mechanism, "--mechanism");
  refuse(a.observations != b.observations, "--control-rows");
  refuse(given.task.rows != plain.task.rows, "--rows");
  refuse(given.task.dose != plain.task.dose, "--dose");
  refuse(given.task.doubles != plain.task.doubles, "--doubles");
  refuse(given.task.asked != plain.task.asked, "--asked");
}

// A share that leaves nothing for training is reported before anything is written.
void check_test_share(const PerturbedTable& table, const PerturbOptions& options) {
  const double share = options.task.unseen;
  try {
    training::split_perturbations(table.rows, share, options.seed);
  } catch (const InputError&) {
    throw InputError(fmt::format(
        "--test: expected a share that leaves perturbations to learn from, got {}", share));
  }
}

training::Scores named(const training::PerturbationScores& of) {
  training::Scores scores;
  const auto add = [&](const std::string& figure, double value) {
    if (!std::isnan(value)) scores.emplace_back(figure, value);
  };
  add("single", of.singles);
  add("double", of.doubles);
  for (size_t seen = 0; seen < of.doubles_by_seen.size(); ++seen) {
    add(fmt::format("double_seen{}", seen), of.doubles_by_seen[seen]);
  }
  return scores;
}

// Which perturbations are predicted, so that other programs can use the same ones.
Json line_of(const PerturbedTable& table, const training::PerturbationSplit& split, uint64_t seed) {
  std::vector<std::string> held_out;
  for (const auto* part : {&split.singles, &split.doubles}) {
    for (const auto& targets : *part) {
      held_out.push_back(training::perturbation_name(table.rows, targets));
    }
  }
  return {{"task", "perturb"},
          {"seed", seed},
          {"read", table.read},
          {"columns", table.rows.features.size()},
          {"control_rows", table.kinds.control_rows},
          {"learned", split.learned.size()},
          {"held_out", held_out}};
}

// The trials of one seed. `table`: absent if tables are simulated.
void run_seed(const PerturbOptions& o, const std::optional<PerturbedTable>& table, uint64_t seed,
              StudyLog& log) {
  training::Ranks& ranks = *o.ranks;
  std::optional<training::PerturbationSplit> split;
  if (table) {
    split = training::split_perturbations(table->rows, o.task.unseen, seed);
    log.write("perturbation_split", line_of(*table, *split, seed));
  }
  // Made by the first trial that is left to do.
  std::optional<training::PerturbationData> made;
  const auto data = [&]() -> const training::PerturbationData& {
    if (!made) {
      made = table ? training::arrange_perturbations(table->rows, *split)
                   : training::draw_perturbations(o.task, seed);
    }
    return *made;
  };
  const Json trial{{"seed", seed}};
  for (const std::string& name : training::perturbation_baseline_names()) {
    log.add_fit(name, trial, [&](const auto&) {
      return named(training::perturbation_baseline_scores(name, data(), o.task));
    });
  }
  std::optional<training::EncodingMaker> maker;
  for (const std::string& name : chosen_encodings(o)) {
    const Stopwatch watch;
    Json besides;
    const auto train = [&] {
      if (!maker) {
        training::EncodingOptions making = o.making;
        making.embedding.seed = static_cast<int64_t>(seed);
        maker.emplace(data().table, making);
      }
      FeatureTransformerOptions shape = o.model;
      shape.features = data().control.size(1);
      const auto events = watched(fmt::format("perturb {} seed {}", name, seed), o);
      const training::MadeEncoding encoding =
          maker->make(name, shape, seed, events.checkpoint, ranks);
      FeatureTransformer model = training::make_model(shape, encoding, seed);
      restore_values(model, data().control, o.restoring, seed, events, ranks);
      learn_perturbations(model, data(), o.answering, seed, events, ranks);
      training::Scores scores;
      ranks.lead(
          [&](const auto& pause) {
            scores = named(training::perturbation_scores(model, data(), o.task, pause));
          },
          events.checkpoint);
      besides = {{"edges", encoding.edges}, {"parameters", training::parameter_count(*model)}};
      return scores;
    };
    log.add(name, trial, train, [&] {
      besides["seconds"] = watch.seconds();
      return besides;
    });
  }
}

int run_perturb(const PerturbOptions& given) {
  PerturbOptions options = given;
  options.model.values = FeatureValues::linear;
  complete(options);
  options.task.simulation.mechanism = parse_name<CausalMechanism>("--mechanism", options.mechanism);
  std::optional<PerturbedTable> table;
  if (options.table.path.empty()) {
    check_without_table(options.table);
    training::check(options.task);
  } else {
    refuse_simulation_options(options);
    table = read_perturbed_table(options.table);
    training::check_asking(options.task, std::ssize(table->rows.features));
    check_test_share(*table, options);
  }
  std::vector<std::string> figures{"single", "double"};
  if (table && table->kinds.doubles.empty()) figures.pop_back();
  StudyLog log(options, table ? table->read : Json(), "perturb", figures, /*lower_is_better=*/true,
               // Figures of real cells, which cannot be compared with simulated ones.
               published_scores(kPublishedFigures, "causal perturb", table ? "" : "real cells"));
  const auto trials = [&] {
    for (int64_t s = 0; s < options.seeds; ++s) {
      run_seed(options, table, options.seed + static_cast<uint64_t>(s), log);
    }
  };
  return log.run(trials, /*digits=*/4);
}

}  // namespace

void add_task_perturb(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<PerturbOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "perturb",
       .summary = "Predict the effects of unseen interventions with every encoding of the features",
       .examples =
           "nsimplex causal task perturb --threads 1 --out runs/perturb\n"
           "nsimplex causal task perturb cells.csv --perturbations guides.csv --counts --out "
           "runs/own\n"
           "nsimplex causal task perturb cells.csv --perturbations condition --control NT\n"
           "nsimplex causal task perturb --encodings none,learned,cape --seeds 3 --json\n"
           "nsimplex causal task perturb --encodings cape --threshold 0.1 --hops 3\n"
           "nsimplex causal task perturb --resume runs/perturb",
       .resumes = true,
       .inputs = {&options->table.path, &options->table.perturbations}},
      options, run_perturb);
  add_perturbed_table_options(command, options->table);
  add_feature_options(command, *options);
  const auto add = option_adder(command, "Task");
  const auto simulate = option_adder(command, "Simulated table");
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  training::PerturbationOptions& task = options->task;
  simulate("--nodes", task.simulation.nodes, "Features")->check(positive);
  simulate("--degree", task.simulation.degree, "Links per new node of the graph")->check(positive);
  simulate("--mechanism", options->mechanism, "Mechanism of an effect: mlp or linear")
      ->check(one_of({"mlp", "linear"}));
  simulate("--control-rows", task.simulation.observations, "Number of rows without an intervention")
      ->check(positive);
  simulate("--rows", task.rows, "Rows per intervention")->check(positive);
  simulate("--dose", task.dose, "Size of an intervention: do(x = mean + dose deviations)");
  simulate("--doubles", task.doubles, "Pairs of features for training");
  simulate("--asked", task.asked, "Unseen pairs to predict");
  add("--test", task.unseen,
      "Share that is held out for the test: of the features, or of the perturbations of a TABLE")
      ->check(within(0.001, 0.999));
  add("--most-changed", task.most_changed,
      "Most changed features, on which a prediction is evaluated")
      ->check(positive);
}

}  // namespace nsimplex::cli

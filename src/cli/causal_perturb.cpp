// The command `causal perturb`: the prediction of unseen interventions with every encoding.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "causal/option_names.h"
#include "cli/commands.h"
#include "cli/feature_experiment.h"
#include "cli/output.h"
#include "cli/perturbed_table.h"
#include "cli/results.h"
#include "cli/run_folder.h"
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

class Perturb {
 public:
  /// `table`: absent if tables are simulated.
  Perturb(PerturbOptions options, std::optional<PerturbedTable> table)
      : options_(std::move(options)),
        table_(std::move(table)),
        names_(chosen_encodings(options_)),
        log_(options_),
        results_(
            "perturb", figures(table_), /*lower_is_better=*/true,
            // Figures of real cells, which cannot be compared with simulated ones.
            published_scores(kPublishedFigures, "causal perturb", table_ ? "" : "real cells")) {
    log_.share(ranks_);
  }

  int run() {
    try {
      for (int64_t s = 0; s < options_.seeds; ++s)
        run_seed(options_.seed + static_cast<uint64_t>(s));
    } catch (const Interrupted&) {
      finish();
      throw;
    }
    finish();
    log_.say_if_finished();
    return 0;
  }

 private:
  static std::vector<std::string> figures(const std::optional<PerturbedTable>& table) {
    if (table && table->kinds.doubles.empty()) return {"single"};
    return {"single", "double"};
  }

  void run_seed(uint64_t seed) {
    std::optional<training::PerturbationSplit> split;
    if (table_) {
      split = training::split_perturbations(table_->rows, options_.task.unseen, seed);
      say_split(*split, seed);
    }
    // For a run that continues: whether anything is left to do.
    const auto& references = training::perturbation_baseline_names();
    const auto is_left = [&](const std::string& name) {
      return log_.find(key_of(name, seed)) == nullptr;
    };
    std::optional<training::PerturbationData> data;
    if (std::ranges::any_of(references, is_left) || std::ranges::any_of(names_, is_left)) {
      data = table_ ? training::arrange_perturbations(table_->rows, *split)
                    : training::draw_perturbations(options_.task, seed);
    }
    for (const std::string& name : references) {
      if (is_left(name)) {
        training::PerturbationScores scores;
        ranks_.lead(
            [&](const auto&) {
              scores = training::perturbation_baseline_scores(name, *data, options_.task);
            },
            [&] { check_together(ranks_); });
        write(name, seed, scores);
      } else {
        take(name, seed);
      }
    }
    std::optional<training::EncodingMaker> maker;
    for (const std::string& name : names_) {
      if (!is_left(name)) {
        take(name, seed);
        continue;
      }
      if (!maker) {
        training::EncodingOptions making = options_.making;
        making.embedding.seed = static_cast<int64_t>(seed);
        maker.emplace(data->table, making);
      }
      train(*maker, *data, name, seed);
    }
  }

  // Reports which perturbations are predicted, so that other programs can use the same ones.
  void say_split(const training::PerturbationSplit& split, uint64_t seed) {
    Json line{{"task", "perturb"}, {"seed", seed}, {"read", table_->read}};
    line["columns"] = table_->rows.features.size();
    line["control_rows"] = table_->kinds.control_rows;
    line["learned"] = split.learned.size();
    std::vector<std::string> held_out;
    for (const auto* part : {&split.singles, &split.doubles}) {
      for (const auto& targets : *part) {
        held_out.push_back(training::perturbation_name(table_->rows, targets));
      }
    }
    line["held_out"] = held_out;
    log_.write("perturbation_split", line);
  }

  static Json key_of(const std::string& name, uint64_t seed) {
    return {{"task", "perturb"}, {"encoding", name}, {"seed", seed}};
  }

  void take(const std::string& name, uint64_t seed) {
    const Json* line = log_.find(key_of(name, seed));
    if (line == nullptr) return;
    log_.write("encoding_trial", *line);
    results_.add(name, std::to_string(seed), scores_of(*line));
  }

  void train(training::EncodingMaker& maker, const training::PerturbationData& data,
             const std::string& name, uint64_t seed) {
    const Stopwatch watch;
    FeatureTransformerOptions shape = options_.model;
    shape.features = data.control.size(1);
    const auto events = watched(fmt::format("perturb {} seed {}", name, seed), options_);
    const training::MadeEncoding encoding =
        maker.make(name, shape, seed, events.checkpoint, ranks_);
    FeatureTransformer model = training::make_model(shape, encoding, seed);
    restore_values(model, data.control, options_.restoring, seed, events, ranks_);
    learn_perturbations(model, data, options_.answering, seed, events, ranks_);
    training::PerturbationScores scores;
    ranks_.lead(
        [&](const auto& pause) {
          scores = training::perturbation_scores(model, data, options_.task, pause);
        },
        events.checkpoint);
    write(name, seed, scores,
          {{"edges", encoding.edges},
           {"parameters", training::parameter_count(*model)},
           {"seconds", watch.seconds()}});
  }

  void write(const std::string& name, uint64_t seed, const training::PerturbationScores& scores,
             const Json& besides = Json::object()) {
    if (!ranks_.writes()) return;
    Json line = key_of(name, seed);
    const auto add = [&](const std::string& figure, double value) {
      if (!std::isnan(value)) line[figure] = value;
    };
    add("single", scores.singles);
    add("double", scores.doubles);
    for (size_t seen = 0; seen < scores.doubles_by_seen.size(); ++seen) {
      add(fmt::format("double_seen{}", seen), scores.doubles_by_seen[seen]);
    }
    results_.add(name, std::to_string(seed), scores_of(line));
    line.update(besides);
    log_.write("encoding_trial", line);
  }

  void finish() {
    for (const Json& line : results_.summary()) log_.write("encoding_mean", line);
    if (!options_.json) print(results_.table(4));
  }

  PerturbOptions options_;
  training::Ranks& ranks_ = *options_.ranks;
  std::optional<PerturbedTable> table_;
  std::vector<std::string> names_;
  RunLog log_;
  FeatureResults results_;
};

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
  return Perturb(std::move(options), std::move(table)).run();
}

}  // namespace

void add_causal_perturb(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<PerturbOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "perturb",
       .summary = "Predict the effects of unseen interventions with every encoding of the features",
       .examples = "nsimplex causal perturb --threads 1 --out runs/perturb\n"
                   "nsimplex causal perturb cells.csv --perturbations guides.csv --counts --out "
                   "runs/own\n"
                   "nsimplex causal perturb cells.csv --perturbations condition --control NT\n"
                   "nsimplex causal perturb --encodings none,learned,cape --seeds 3 --json\n"
                   "nsimplex causal perturb --encodings cape --threshold 0.1 --hops 3\n"
                   "nsimplex causal perturb --resume runs/perturb",
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

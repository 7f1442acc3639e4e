#include <fmt/format.h>

#include <algorithm>

#include "cli/causal.h"
#include "cli/feature_experiment.h"
#include "cli/graph_results.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/run_log.h"
#include "training/parameters.h"
#include "training/perturbation_task.h"
#include "training/stopwatch.h"

namespace nsimplex::cli {
namespace {

struct PerturbOptions : FeatureExperimentOptions {
  training::PerturbationOptions task{.simulation = {.graph = CausalGraph::scale_free,
                                                    .nodes = 40,
                                                    .observations = 2000,
                                                    .mechanism = CausalMechanism::mlp}};
  std::string mechanism = "mlp";
};

// Tables 2 (scGPT) and 3 of the paper, on real cells: not to be compared with simulated ones.
const std::map<std::string, training::Scores>& published() {
  static const std::map<std::string, training::Scores> figures{
      {"none", {{"single", 0.234}, {"double", 0.238}}},
      {"sinusoidal", {{"single", 0.224}, {"double", 0.230}}},
      {"learned", {{"single", 0.202}, {"double", 0.201}}},
      {"relative", {{"single", 0.195}, {"double", 0.204}}},
      {"cape", {{"single", 0.182}, {"double", 0.176}}},
      {"cape-correlation", {{"single", 0.209}, {"double", 0.213}}},
      {"cape-euclidean", {{"single", 0.192}, {"double", 0.196}}},
      {"cape-additive", {{"single", 0.201}, {"double", 0.208}}}};
  return figures;
}

class Perturb {
 public:
  explicit Perturb(PerturbOptions options)
      : options_(std::move(options)),
        names_(chosen_encodings(options_)),
        log_(options_),
        results_("perturb", {"single", "double"}, /*lower_is_better=*/true, published()) {}

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
  void run_seed(uint64_t seed) {
    std::vector<std::string> left;  // of a run that continues: what it has not come to
    for (const std::string& name : names_) {
      if (log_.find(key_of(name, seed)) == nullptr) left.push_back(name);
    }
    if (left.empty()) {
      take("unchanged", seed);
      for (const std::string& name : names_) take(name, seed);
      return;
    }
    const auto data = training::draw_perturbations(options_.task, seed);
    write("unchanged", seed, training::unchanged_scores(data, options_.task));
    training::EncodingOptions making = options_.making;
    making.embedding.seed = static_cast<int64_t>(seed);
    training::EncodingMaker maker(data.table, making);
    for (const std::string& name : names_) {
      if (std::ranges::find(left, name) != left.end()) {
        train(maker, data, name, seed);
      } else {
        take(name, seed);
      }
    }
  }

  static Json key_of(const std::string& name, uint64_t seed) {
    return {{"task", "perturb"}, {"encoding", name}, {"seed", seed}};
  }

  void take(const std::string& name, uint64_t seed) {
    const Json* line = log_.find(key_of(name, seed));
    if (line == nullptr) return;
    log_.write(*line);
    results_.add(name, std::to_string(seed), scores_of(*line));
  }

  void train(training::EncodingMaker& maker, const training::PerturbationData& data,
             const std::string& name, uint64_t seed) {
    const training::Stopwatch watch;
    FeatureTransformerOptions shape = options_.model;
    shape.features = data.control.size(1);
    const training::MadeEncoding encoding = maker.make(name, shape, seed);
    FeatureTransformer model = training::make_model(shape, encoding, seed);
    const auto events = watched(fmt::format("perturb {} seed {}", name, seed), options_.json);
    restore_values(model, data.control, options_.restoring, seed, events);
    learn_perturbations(model, data, options_.answering, seed, events);
    write(name, seed, training::perturbation_scores(model, data, options_.task),
          {{"edges", encoding.edges},
           {"parameters", training::parameter_count(*model)},
           {"seconds", watch.seconds()}});
  }

  void write(const std::string& name, uint64_t seed, const training::PerturbationScores& scores,
             const Json& besides = Json::object()) {
    Json line = key_of(name, seed);
    line["single"] = scores.singles;
    line["double"] = scores.doubles;
    line.update(besides);
    log_.write(line);
    results_.add(name, std::to_string(seed),
                 {{"single", scores.singles}, {"double", scores.doubles}});
  }

  void finish() {
    for (const Json& line : results_.summary()) log_.write(line);
    if (!options_.json) print(results_.table(4));
  }

  PerturbOptions options_;
  std::vector<std::string> names_;
  RunLog log_;
  FeatureResults results_;
};

int run_perturb(const PerturbOptions& given) {
  PerturbOptions options = given;
  options.model.values = FeatureValues::linear;
  complete(options);
  options.task.simulation.mechanism =
      options.mechanism == "linear" ? CausalMechanism::linear : CausalMechanism::mlp;
  training::check(options.task);
  return Perturb(std::move(options)).run();
}

}  // namespace

void add_causal_perturb(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<PerturbOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "perturb",
       .summary = "Predict what unseen interventions do, with every encoding of the features",
       .examples = "nsimplex causal perturb --threads 1 --out runs/perturb\n"
                   "nsimplex causal perturb --encodings none,learned,cape --seeds 3 --json\n"
                   "nsimplex causal perturb --encodings cape --threshold 0.1 --hops 3\n"
                   "nsimplex causal perturb --resume runs/perturb",
       .resumes = true},
      options, run_perturb);
  add_feature_options(command, *options);
  const auto add = option_adder(command, "Task");
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 20);
  training::PerturbationOptions& task = options->task;
  add("--nodes", task.simulation.nodes, "Features of the simulated table")->check(positive);
  add("--degree", task.simulation.degree, "Links of a new node of its graph")->check(positive);
  add("--mechanism", options->mechanism, "Of an effect: mlp, linear")
      ->check(CLI::IsMember({"mlp", "linear"}));
  add("--observations", task.simulation.observations, "Unperturbed rows")->check(positive);
  add("--rows", task.rows, "Rows of each intervention")->check(positive);
  add("--dose", task.dose, "do(x = mean + dose deviations)");
  add("--unseen", task.unseen, "Share of the features whose intervention is asked for");
  add("--doubles", task.doubles, "Pairs of features to learn from");
  add("--asked", task.asked, "Unseen pairs to be asked for");
  add("--most-changed", task.most_changed, "Features that an answer is judged by")->check(positive);
}

}  // namespace nsimplex::cli

// Declares what experiments that compare graph models share.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_training.h"

/// Shared code of the experiments that train on graphs: they compare models over several seeds and
/// show the paper's results in the same table.
namespace nsimplex::cli {

/// Options of every such command. Each model has its own defaults.
struct GraphExperimentOptions : CommonOptions {
  std::vector<std::string> models;  ///< names of models; empty: all
  int64_t seeds = 1;
  std::optional<int64_t> epochs, batch, evaluate_every, patience;
  std::optional<double> learning_rate, warmup, clip, weight_decay, ema, max_seconds, redraw;
  std::string feature_map = "relu";  ///< for the kernel form
  int64_t features = 0;
};

/// The random features of models of the kernel form.
training::KernelFeatureOptions kernel_features(const GraphExperimentOptions& options);

/// Adds --readout, the form of the last layer of models of the kernel form: kernel or softmax.
void add_kernel_readout(CLI::App& command, std::string& readout);

/// The names of models, or of what makes them.
template <class Model>
std::vector<std::string> model_names(const std::vector<Model>& models) {
  std::vector<std::string> names;
  for (const Model& model : models) names.push_back(model.name);
  return names;
}

/// Adds --models, --seeds and the options that override the training of all models.
void add_experiment_options(CLI::App& command, GraphExperimentOptions& options,
                            const std::vector<std::string>& models);

/// One of the models of an experiment.
struct GraphArm {
  std::string name;                         ///< as in --models
  training::GraphTrainingOptions training;  ///< its own, before overrides
  std::function<std::shared_ptr<training::GraphModel>()> make;
  /// the paper's results under the names of the task's metrics; may be empty
  training::Scores published;
};

/// A model of the paper that is not trained here.
struct PublishedScores {
  std::string name;
  training::Scores scores;
};

struct GraphExperiment {
  std::string task;            ///< the command's name
  std::vector<GraphArm> arms;  ///< trained one after the other on the data of each seed
  std::vector<PublishedScores> published = {};
  std::function<std::unique_ptr<training::GraphTask>(uint64_t seed)> draw;
  std::vector<std::string> shown = {};  ///< metrics in the table; empty: all
  double scale = 1.0;                   ///< factor of metrics in the table: 100 for percentages
  int digits = 4;                       ///< digits of metrics in the table
  Json reading = nullptr;               ///< decisions made while reading the data, for each result
};

/// Trains every chosen model for every seed, shows progress, writes points, results and means to
/// the run directory and as JSON, and prints the table. Ctrl-C stops the current training with its
/// result so far, shows all results, and throws Interrupted.
int run_experiment(const GraphExperimentOptions& options, const GraphExperiment& experiment);

}  // namespace nsimplex::cli

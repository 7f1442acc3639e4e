#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "train/encoder_network.h"
#include "train/graph_training.h"

/// What the commands of `nsimplex graph` that train have in common: models beside each other, over
/// several seeds, with the paper's figures in the same table.
namespace nsimplex::cli {

/// Options of every such command. What is not given is each model's own.
struct GraphExperimentOptions : CommonOptions {
  std::vector<std::string> models;  ///< names of arms; empty: all
  int64_t seeds = 1;
  std::optional<int64_t> epochs, batch, evaluate_every, patience;
  std::optional<double> learning_rate, warmup, clip, weight_decay, ema, max_seconds, redraw;
  std::string feature_map = "relu";  ///< of the kernel form
  int64_t features = 0;
};

/// What random features the models of the kernel form have.
training::KernelFeatureOptions kernel_features(const GraphExperimentOptions& options);

/// Adds --models, --seeds and what overrides the training of all models.
void add_experiment_options(CLI::App& command, GraphExperimentOptions& options,
                            const std::vector<std::string>& models);

/// One of the models of an experiment.
struct GraphArm {
  std::string name;                         ///< as --models has it
  training::GraphTrainingOptions training;  ///< its own, before overrides
  std::function<std::shared_ptr<training::GraphModel>()> make;
  training::Scores published;  ///< the paper's figures under the names of the task's; may be empty
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
  std::vector<std::string> shown = {};  ///< figures in the table; empty: all
  double scale = 1.0;                   ///< figures are shown times this: 100 for percentages
  int digits = 4;                       ///< of figures in the table
  Json reading = nullptr;               ///< what was decided to read the data, for each result
};

/// Trains every chosen arm for every seed, shows progress, writes points, results and means to the
/// run directory and as JSON, and prints the table. Ctrl-C ends the training at work with what it
/// reached, shows all there is, and throws Interrupted.
int run_experiment(const GraphExperimentOptions& options, const GraphExperiment& experiment);

}  // namespace nsimplex::cli

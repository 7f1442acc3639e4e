// Declares the models and options of the commands that predict pairs of a set.

#pragma once

#include <optional>
#include <vector>

#include "lab/graphs/graph_experiment.h"

namespace nsimplex::cli {

/// Sizes of the models that predict pairs of a set, as in table 6d of the paper.
struct SetArmOptions {
  int64_t in_channels = 0;

  /// Enc_{1->1}(hidden, hidden / heads, heads) x layers - Enc_{1->2} - MLP(mlp_layers, mlp_hidden,
  /// 1).
  struct Encoders {
    int64_t hidden = 64, heads = 4, layers = 3, mlp_layers = 1, mlp_hidden = 64;
    double dropout = 0.1;
    training::KernelFeatureOptions features;
    training::GraphTrainingOptions training;
  } encoders;

  /// [L_{1->1}(hidden) - ReLU] x layers - L_{1->2} - MLP(mlp_layers, mlp_hidden, 1).
  struct Linear {
    int64_t hidden = 64, layers = 3, mlp_layers = 1, mlp_hidden = 64;
    training::GraphTrainingOptions training;
  } linear;

  std::vector<int64_t> neighbours;  ///< of the graph networks, one model per entry
};

/// Options of the commands that use these models.
struct SetExperimentOptions : GraphExperimentOptions {
  std::optional<int64_t> width, layers;  ///< of all models; absent: each model's own
};

/// Adds add_experiment_options() and --width and --layers.
void add_set_options(CLI::App& command, SetExperimentOptions& options, const SetArmOptions& arms);

/// Replaces a command's own sizes by those that were given.
SetArmOptions with_options(SetArmOptions arms, const SetExperimentOptions& options);

/// softmax and kernel (higher-order transformers), s2g and s2g-plus, and gnn0, gnn5, .. on nearest
/// neighbours. Pairs are evaluated the same way in both orders.
std::vector<GraphArm> set_arms(const SetArmOptions& options);

}  // namespace nsimplex::cli

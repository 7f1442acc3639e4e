#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/causal_embed_command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "train/feature_encodings.h"
#include "train/feature_training.h"
#include "train/graph_task.h"
#include "train/scores.h"

namespace nsimplex::cli {

/// A mean and its interval for people, "+1.5 [+0.9, +2.1]"; one value has no interval, which is
/// said, and of none there is "-".
std::string interval_text(const training::Interval& of,
                          const std::function<std::string(double)>& format);

/// What the commands that compare encodings of features have in common.

struct FeatureExperimentOptions : CommonOptions {
  std::vector<std::string> encodings;  ///< empty: all that the backbone takes
  int64_t seeds = 5;
  FeatureTransformerOptions model{.dim = 32, .heads = 4, .layers = 2};
  std::string preset, backbone = "softmax", aggregate = "cls", identity = "none";
  training::FeatureTrainingOptions restoring{.epochs = 10}, answering{.epochs = 20};
  training::EncodingOptions making;
  std::string estimator = "order";
  double threshold = -1;  ///< of the learned graph; below 0: the estimator's own
  double sparsity = -1;   ///< the same
  EmbeddingFlags embedding;
};

/// Adds --encodings, --seeds, the model's shape, its training and the three steps of an encoding.
void add_feature_options(CLI::App& command, FeatureExperimentOptions& options);

/// Reads the words among the options into the structures they belong to.
void complete(FeatureExperimentOptions& options);

/// The encodings to compare, in the order in which they are shown.
std::vector<std::string> chosen_encodings(const FeatureExperimentOptions& options);

/// A progress bar for each training that reports to it, and the end of all of them by Ctrl-C.
training::FeatureEvents watched(const std::string& label, bool quiet);

/// Figures of encodings over paired trials: the same data, split and seed.
class FeatureResults {
 public:
  /// `figures` in the order in which they are shown; `published`: the paper's, by encoding.
  FeatureResults(std::string task, std::vector<std::string> figures, bool lower_is_better,
                 std::map<std::string, training::Scores> published = {});

  /// `trial`: SPLIT/SEED, or what there is of it. One of a split alone belongs to all seeds of it.
  void add(const std::string& encoding, const std::string& trial, const training::Scores& scores);

  /// One line an encoding: mean and sample deviation of every figure, and what `cape` is better by
  /// in the trials that both have, with its 95 % interval.
  std::vector<Json> summary() const;
  std::string table(int digits) const;

 private:
  using Trials = std::map<std::string, training::Scores>;

  std::vector<double> values(const Trials& trials, const std::string& figure) const;
  std::vector<double> gains(const std::string& encoding, const std::string& figure) const;

  std::string task_;
  std::vector<std::string> figures_, order_;
  bool lower_is_better_;
  std::map<std::string, training::Scores> published_;
  std::map<std::string, Trials> trials_;
};

}  // namespace nsimplex::cli

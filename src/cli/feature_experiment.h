// Declares what commands that compare feature encodings share.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/causal_embed_command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/results.h"
#include "train/feature_encodings.h"
#include "train/feature_training.h"
#include "train/scores.h"

namespace nsimplex::cli {

/// A mean and its interval as text, "+1.5 [+0.9, +2.1]". One value has no interval, and the text
/// says so. Without values it is "-".
std::string interval_text(const training::Interval& of,
                          const std::function<std::string(double)>& format);

/// Shared code of the commands that compare encodings of features.

struct FeatureExperimentOptions : CommonOptions {
  std::vector<std::string> encodings;  ///< empty: all that the backbone supports
  int64_t seeds = 5;
  FeatureTransformerOptions model{.dim = 32, .heads = 4, .layers = 2};
  std::string preset, backbone = "softmax", aggregate = "cls", identity = "none";
  training::FeatureTrainingOptions restoring{.epochs = 10}, answering{.epochs = 20};
  training::EncodingOptions making;
  std::string estimator = "order";
  double threshold = -1;  ///< of the learned graph; below 0: the estimator's default
  double sparsity = -1;   ///< below 0: the estimator's default
  EmbeddingFlags embedding;
};

/// Adds --encodings, --seeds, the model's shape, its training and the three steps of an encoding.
void add_feature_options(CLI::App& command, FeatureExperimentOptions& options);

/// Converts the names among the options into the structures that they belong to.
void complete(FeatureExperimentOptions& options);

/// The encodings to compare, in the order of the table.
std::vector<std::string> chosen_encodings(const FeatureExperimentOptions& options);

/// Throws Interrupted on all ranks if a signal has come to one of them. All ranks call it together.
void check_together(training::Ranks& ranks);

/// A progress bar for each training that reports to it. Ctrl-C on any rank ends all of them.
training::FeatureEvents watched(const std::string& label, const CommonOptions& options);

/// Metrics of encodings over paired trials: the same data, split and seed.
class FeatureResults {
 public:
  /// `figures` are in the order of the table; `published` are the paper's, by encoding.
  FeatureResults(std::string task, std::vector<std::string> figures, bool lower_is_better,
                 std::map<std::string, training::Scores> published = {});

  /// `trial`: SPLIT/SEED, or what there is of it. One of a split alone belongs to all seeds of it.
  void add(const std::string& encoding, const std::string& trial, const training::Scores& scores) {
    results_.add(encoding, trial, scores);
  }

  /// One line per encoding: mean and sample deviation of every metric, and the advantage of `cape`
  /// over the trials that both have, with its 95 % interval.
  std::vector<Json> summary() const;
  std::string table(int digits) const;

 private:
  std::vector<double> gains(const std::string& encoding, const std::string& figure) const;

  std::string task_;
  std::vector<std::string> figures_;
  bool lower_is_better_;
  std::map<std::string, training::Scores> published_;
  Results results_;
};

}  // namespace nsimplex::cli

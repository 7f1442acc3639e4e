// Declares the metrics of compared models over repeated trials.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/output.h"
#include "train/scores.h"

namespace nsimplex::cli {

/// The value of a metric; NaN where there is none of this name.
double value_of(const training::Scores& scores, const std::string& metric);

/// Adds metrics to a line, their names behind a prefix.
void add_scores(Json& line, const training::Scores& scores, const std::string& prefix = "");

/// The metrics of a line, in its order: all numbers but the seed. A null is a number that was not
/// finite.
training::Scores scores_of(const Json& line);

/// The text of src/cli/published.json, which the build puts into the program.
extern const char* const kPublishedFigures;

/// The scores of models that a paper published, by model: a table of a command in the text of a
/// published.json. Empty if it has no such table.
std::map<std::string, training::Scores> published_scores(const char* figures,
                                                         const std::string& command,
                                                         const std::string& table);

/// The metrics of models over repeated trials, as rows of models and columns of metrics. Every
/// command that compares models keeps its results here.
class Results {
 public:
  /// A trial of a seed alone; its names are in the order of the seeds.
  static std::string trial_of(uint64_t seed);

  /// Adds the metrics of a model in a trial: a seed, or SPLIT/SEED. A trial of a split alone belongs
  /// to all its seeds.
  void add(const std::string& model, const std::string& trial, const training::Scores& scores);

  /// Models in the order in which they came.
  const std::vector<std::string>& models() const { return order_; }
  bool has(const std::string& model) const { return trials_.contains(model); }

  /// Number of trials of a model.
  size_t trials(const std::string& model) const { return trials_.at(model).size(); }

  /// Names of the metrics of a model's first trial, in their order.
  std::vector<std::string> metrics(const std::string& model) const;

  /// A metric trial by trial, in the order of the trials' names; NaN where a trial lacks it.
  std::vector<double> values(const std::string& model, const std::string& metric) const;

  /// Mean and sample deviation of these.
  training::Spread spread(const std::string& model, const std::string& metric) const;

  /// The metric of `model` minus that of `other` in each trial that both have.
  std::vector<double> differences(const std::string& model, const std::string& other,
                                  const std::string& metric) const;

  /// Writes mean and deviation into a line, as `key` and METRIC_deviation.
  void write(Json& line, const std::string& model, const std::string& metric,
             const std::string& key) const;

  /// "0.912 ± 0.010", times `scale`; of one trial without a deviation; "-" where a trial lacks it.
  std::string cell(const std::string& model, const std::string& metric, int digits,
                   double scale = 1.0) const;

 private:
  using Trials = std::map<std::string, training::Scores>;

  std::vector<std::string> order_;
  std::map<std::string, Trials> trials_;
};

}  // namespace nsimplex::cli

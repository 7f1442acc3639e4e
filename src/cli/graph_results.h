#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/graph_experiment.h"
#include "cli/output.h"
#include "train/scores.h"

namespace nsimplex::cli {

/// Adds metrics to a line, with a prefix before their names.
void add_scores(Json& line, const training::Scores& scores, const std::string& prefix = "");

/// The inverse of add_scores() and of the fields of a result, for the metrics that tables and means
/// need: of a model without training, or of a trained one. A metric that was NaN is NaN again.
training::Scores scores_of(const Json& line);
training::GraphResult result_of(const Json& line);

/// The results of the models of an experiment over the seeds so far.
class GraphResults {
 public:
  explicit GraphResults(const GraphExperiment& experiment) : experiment_(experiment) {}

  void add(const std::string& arm, const training::GraphResult& result);
  void add_reference(const std::string& name, const training::Scores& scores);

  /// One line per trained model, with means and deviations, and one per model that only the paper
  /// has results for.
  std::vector<Json> summary() const;

  /// One row per model: metrics of the best epoch, the first metric of the last epoch, and the
  /// paper's. Empty if there is nothing to show.
  std::string table() const;

 private:
  using Results = std::vector<training::GraphResult>;  // of one model, seed by seed

  std::vector<std::string> figure_names() const;
  std::vector<std::string> published_names() const;  ///< metrics that the paper has for a model
  std::string figure(const training::Spread& of, size_t seeds) const;
  std::vector<std::string> row(const GraphArm& arm, const Results& results,
                               const std::vector<std::string>& names) const;
  std::vector<std::string> published(const training::Scores& scores) const;

  const GraphExperiment& experiment_;
  std::map<std::string, Results> results_;
  std::map<std::string, std::vector<training::Scores>> references_;
};

}  // namespace nsimplex::cli

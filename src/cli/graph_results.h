#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/graph_experiment.h"
#include "cli/output.h"
#include "train/scores.h"

namespace nsimplex::cli {

/// Adds figures to a line, their names behind a prefix.
void add_scores(Json& line, const training::Scores& scores, const std::string& prefix = "");

/// What add_scores() and the fields of a result wrote: figures of a model that needs no training,
/// and of one that was trained, as far as tables and means need them. A figure that was no number is
/// none again.
training::Scores scores_of(const Json& line);
training::GraphResult result_of(const Json& line);

/// What the models of an experiment came to, over the seeds so far.
class GraphResults {
 public:
  explicit GraphResults(const GraphExperiment& experiment) : experiment_(experiment) {}

  void add(const std::string& arm, const training::GraphResult& result);
  void add_reference(const std::string& name, const training::Scores& scores);

  /// One line a trained model, with means and deviations, and one for each model that the paper
  /// alone has figures of.
  std::vector<Json> summary() const;

  /// One row a model: figures of the best epoch, the first of them of the last one, the paper's.
  /// Empty where there is nothing to show.
  std::string table() const;

 private:
  using Results = std::vector<training::GraphResult>;  // of one model, seed by seed

  std::vector<std::string> figure_names() const;
  std::vector<std::string> published_names() const;  ///< figures that the paper has of a model
  std::string figure(const training::Spread& of, size_t seeds) const;
  std::vector<std::string> row(const GraphArm& arm, const Results& results,
                               const std::vector<std::string>& names) const;
  std::vector<std::string> published(const training::Scores& scores) const;

  const GraphExperiment& experiment_;
  std::map<std::string, Results> results_;
  std::map<std::string, std::vector<training::Scores>> references_;
};

}  // namespace nsimplex::cli

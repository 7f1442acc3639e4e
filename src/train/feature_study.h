// Declares the comparison of feature encodings on tables, and metrics of clusters.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "train/feature_encodings.h"
#include "train/feature_model.h"
#include "train/feature_training.h"
#include "train/scores.h"

/// Clusters of embedded observations, and their metrics.
namespace nsimplex::training {

/// k-means (Lloyd) from k-means++ starts. Returns the cluster of every row of x [N, d], int64 [N],
/// for the best of `starts` by the sum of squared distances. A cluster that loses all its rows
/// keeps its centre. O(N k d) per round, at most 100 rounds per start. Source: Arthur and
/// Vassilvitskii, SODA 2007.
at::Tensor k_means(const at::Tensor& x, int64_t k, uint64_t seed, int64_t starts = 10);

/// I(U; V) / ((H(U) + H(V)) / 2) of two labellings, int64 [N] from 0 on. 1 if both have one class
/// only.
double normalised_mutual_information(const at::Tensor& a, const at::Tensor& b);

/// The mean over the rows of (b - a) / max(a, b). a is the mean Euclidean distance to the rows of
/// the same label, and b that to the nearest other label. A row that is alone in its label counts
/// 0. O(N^2 d). Source: Rousseeuw, 1987.
double silhouette(const at::Tensor& x, const at::Tensor& labels);

/// The first `count` principal components of x [N, M]: [N, min(count, N, M)].
at::Tensor principal_components(const at::Tensor& x, int64_t count);

/// Compares encodings of features on tables. One part of the rows determines everything (columns,
/// bins, graph, weights); the other part evaluates it.

struct FeatureStudyOptions {
  FeatureTransformerOptions model;  ///< its features, outputs and encoding are set here
  FeatureTrainingOptions restoring, answering;
  EncodingOptions making;
  int64_t columns = 100;  ///< number of the most variable columns of the training rows
  Ranks* ranks = &only_rank();
};

/// The inputs of a model: the `learn` and the `judge` (test) rows, as the model takes values. Bins
/// and scales come from the former.
struct FeatureInputs {
  at::Tensor learn, judge;
};
FeatureInputs feature_inputs(const at::Tensor& learn, const at::Tensor& judge,
                             const FeatureTransformerOptions& model);

/// Throws InputError if a target, float64 [N], cannot be learned: all its numbers are equal, or
/// their squares overflow. `rows` names it in the message.
void require_varying(const at::Tensor& target, const std::string& rows);

/// One split of one table. Tables are float64 [N, M], finite.
///
/// Several ranks train each model together, and call the same functions. Rank 0 alone evaluates: on
/// the others, scores and embeddings are empty. Linear models know nothing of ranks.
class FeatureStudy {
 public:
  /// Throws InputError if fewer than two columns vary among the training rows.
  FeatureStudy(const at::Tensor& learn, const at::Tensor& judge,
               const FeatureStudyOptions& options);

  /// Restores masked values, then learns classes, int64 [N]. Metrics in percent: `accuracy` and
  /// `f1`, the macro mean.
  Scores classify(const std::string& encoding, const at::Tensor& learn, const at::Tensor& judge,
                  int64_t classes, uint64_t seed, const FeatureEvents& events = {});

  /// The same with numbers, [N]. Metrics: `medae`, the median absolute error, and `r2`. Throws
  /// InputError like require_varying().
  Scores regress(const std::string& encoding, const at::Tensor& learn, const at::Tensor& judge,
                 uint64_t seed, const FeatureEvents& events = {});

  /// Restores masked values and embeds the training rows, [N, D].
  at::Tensor embed(const std::string& encoding, uint64_t seed, const FeatureEvents& events = {});

  /// The same metrics for linear models on the values of the same rows and columns, and the
  /// `strength` of their penalty. logistic_regression() and ridge_regression() explain how it is
  /// chosen.
  Scores classify_linearly(const at::Tensor& learn, const at::Tensor& judge, int64_t classes,
                           const FeatureEvents& events = {}) const;
  Scores regress_linearly(const at::Tensor& learn, const at::Tensor& judge) const;

  int64_t columns() const { return inputs_.learn.size(1); }

  /// The number of edges of the last model's graph (-1: no graph), and its number of parameters.
  int64_t edges() const { return edges_; }
  int64_t parameters() const { return parameters_; }

  /// The last model, without the names of its columns and classes.
  const FeatureModel& last() const { return last_; }

  /// The columns of the tables that models use, ascending.
  const at::Tensor& chosen() const { return chosen_; }

 private:
  FeatureTransformer restored(const std::string& encoding, int64_t outputs, uint64_t seed,
                              const FeatureEvents& events);

  FeatureStudyOptions options_;
  FeatureModel last_;
  at::Tensor chosen_;
  at::Tensor learn_, judge_;  // values of the useful columns
  FeatureInputs inputs_;
  std::unique_ptr<EncodingMaker> maker_;
  int64_t edges_ = -1, parameters_ = 0;
};

}  // namespace nsimplex::training

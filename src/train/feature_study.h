#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "train/feature_encodings.h"
#include "train/feature_model.h"
#include "train/feature_training.h"
#include "train/graph_task.h"

/// Clusters of embedded observations, and how good they are.
namespace nsimplex::training {

/// k-means (Lloyd) from k-means++ starts, the best of `starts` by the sum of squared distances: the
/// cluster of every row of x [N, d], int64 [N]. A cluster that loses all its rows keeps its centre.
/// O(N k d) a round, at most 100 rounds a start. Source: Arthur and Vassilvitskii, SODA 2007.
at::Tensor k_means(const at::Tensor& x, int64_t k, uint64_t seed, int64_t starts = 10);

/// I(U; V) / ((H(U) + H(V)) / 2) of two labellings, int64 [N] from 0 on; 1 where both are one
/// class.
double normalised_mutual_information(const at::Tensor& a, const at::Tensor& b);

/// Mean over the rows of (b - a) / max(a, b): a the mean Euclidean distance to the rows of the same
/// label, b that to the nearest other label's; 0 for a row alone in its label. O(N^2 d).
/// Source: Rousseeuw, 1987.
double silhouette(const at::Tensor& x, const at::Tensor& labels);

/// The first `count` principal components of x [N, M]: [N, min(count, N, M)].
at::Tensor principal_components(const at::Tensor& x, int64_t count);

/// Encodings of features compared on tables: one part of the rows makes everything (columns, bins,
/// graph, weights), the other part judges.

struct FeatureStudyOptions {
  FeatureTransformerOptions model;  ///< its features, outputs and encoding are filled in
  FeatureTrainingOptions restoring, answering;
  EncodingOptions making;
  int64_t columns = 100;  ///< the most variable ones of the rows to learn from
};

/// What a model is given: of `learn` rows and of `judge` rows, in the way the model takes values.
/// Bins and scales come from the former.
struct FeatureInputs {
  at::Tensor learn, judge;
};
FeatureInputs feature_inputs(const at::Tensor& learn, const at::Tensor& judge,
                             const FeatureTransformerOptions& model);

/// Throws InputError where a target, float64 [N], cannot be learned: all its numbers are equal, or
/// their squares overflow. `rows` is what the errors call them.
void require_varying(const at::Tensor& target, const std::string& rows);

/// One split of one table. Tables are float64 [N, M], finite.
class FeatureStudy {
 public:
  /// Throws InputError where fewer than two columns vary among the rows to learn from.
  FeatureStudy(const at::Tensor& learn, const at::Tensor& judge,
               const FeatureStudyOptions& options);

  /// Restores masked values, then learns classes, int64 [N]. Figures `accuracy` and `f1`, the
  /// macro mean, in percent.
  Scores classify(const std::string& encoding, const at::Tensor& learn, const at::Tensor& judge,
                  int64_t classes, uint64_t seed, const FeatureEvents& events = {});

  /// The same with numbers, [N]: `medae`, the median absolute error, and `r2`. Throws InputError as
  /// require_varying() does.
  Scores regress(const std::string& encoding, const at::Tensor& learn, const at::Tensor& judge,
                 uint64_t seed, const FeatureEvents& events = {});

  /// Restores masked values and embeds the rows to learn from, [N, D].
  at::Tensor embed(const std::string& encoding, uint64_t seed, const FeatureEvents& events = {});

  /// The same figures of linear models of the same rows and columns, which see the values
  /// themselves, and `strength`, of their penalty; logistic_regression() and ridge_regression() say
  /// how it is chosen.
  Scores classify_linearly(const at::Tensor& learn, const at::Tensor& judge, int64_t classes,
                           const FeatureEvents& events = {}) const;
  Scores regress_linearly(const at::Tensor& learn, const at::Tensor& judge) const;

  int64_t columns() const { return inputs_.learn.size(1); }

  /// Of the last model: its encoding's graph, -1 for none, and its parameters.
  int64_t edges() const { return edges_; }
  int64_t parameters() const { return parameters_; }

  /// The last model itself, without the names of its columns and classes.
  const FeatureModel& last() const { return last_; }

  /// Numbers of the columns that models take, of those of the tables, ascending.
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

// Declares the task of predicting the effects of interventions.

#pragma once

#include <nsimplex/causal.h>
#include <nsimplex/feature_transformer.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/feature_training.h"

/// The effects of interventions on the other features. A model learns from some interventions and
/// predicts others, as in gene perturbation prediction. The data here are simulated, so the truth
/// is known; perturbed_rows.h makes the same form from a user's table.
namespace nsimplex::training {

struct PerturbationOptions {
  CausalSimulationOptions simulation;
  double dose = 3.0;          ///< do(x_p = mean + dose deviations)
  double unseen = 0.25;       ///< share of the features whose single interventions are held out
  int64_t doubles = 20;       ///< pairs to learn from, of features that are not held out
  int64_t asked = 20;         ///< held-out pairs, of any features
  int64_t rows = 64;          ///< observations per intervention
  int64_t most_changed = 20;  ///< number of features in the metrics of an intervention
};

/// do() on one or two features, and its result.
struct Perturbation {
  std::vector<int64_t> features;
  at::Tensor after;   ///< float32 [rows, M]
  at::Tensor before;  ///< int64 [rows]: the row of `control` with which each row is paired
};

/// Columns are in deviations from the mean of the unperturbed observations. In simulated data, row
/// r of every intervention is the counterfactual of row r of `control`.
struct PerturbationData {
  at::Tensor table;    ///< float64 [n, M], unperturbed, not scaled: for structure learning
  at::Tensor graph;    ///< float64 [M, M], the true graph; undefined if unknown
  at::Tensor control;  ///< float32 [n, M]
  double dose;         ///< the value that a target gets
  int64_t starts;      ///< number of first rows of `control` from which predictions start
  std::vector<Perturbation> learned, singles, doubles;

  /// The mean of the rows from which predictions start, [M].
  at::Tensor before() const { return control.narrow(0, 0, starts).mean(0); }
};

/// Throws InputError that names the option if an option is invalid.
void check(const PerturbationOptions& options);

/// The same for the options that apply to a user's table: `unseen` and `most_changed`.
void check_asking(const PerturbationOptions& options, int64_t features);

/// Draws a model by `seed`, unperturbed observations and interventions. Throws InputError like
/// check().
PerturbationData draw_perturbations(const PerturbationOptions& options, uint64_t seed);

/// The mean squared error of the mean change of the `most_changed` features without the targets,
/// averaged over interventions, in squared deviations. NaN if there are no interventions.
struct PerturbationScores {
  double singles = 0.0, doubles = 0.0;
  /// For double interventions with zero, one or two targets whose single intervention was learned.
  std::array<double, 3> doubles_by_seen{};
};

/// The scores of a model of linear values. Its input is an observation in which the targets have
/// their new values and are marked; reconstruct() gives its prediction. `checkpoint` is called
/// before each batch and may throw to end the evaluation.
PerturbationScores perturbation_scores(FeatureTransformer& model, const PerturbationData& data,
                                       const PerturbationOptions& options,
                                       const std::function<void()>& checkpoint = {});

/// The scores of the prediction that the mean of feature m changes by `response(features)[m]`, [M].
PerturbationScores response_scores(
    const PerturbationData& data, const PerturbationOptions& options,
    const std::function<at::Tensor(const std::vector<int64_t>& features)>& response);

/// The scores of the prediction that only the targets change.
PerturbationScores unchanged_scores(const PerturbationData& data,
                                    const PerturbationOptions& options);

/// Learns the interventions data.learned by the squared error of all features of every row.
void learn_perturbations(FeatureTransformer& model, const PerturbationData& data,
                         const FeatureTrainingOptions& options, uint64_t seed,
                         const FeatureEvents& events = {}, Ranks& ranks = only_rank());

/// Baselines for the effects of interventions.

/// Predictions from the responses of the learned interventions only. A response [M] is the mean of
/// the rows after an intervention minus the mean before it.
class PerturbationBaselines {
 public:
  explicit PerturbationBaselines(const PerturbationData& data);

  /// The mean of all responses; for each feature, over the interventions that do not target it.
  const at::Tensor& mean() const { return mean_; }

  /// For two features, the sum of their own responses if both single interventions were learned;
  /// otherwise the mean of all responses.
  at::Tensor additive(const std::vector<int64_t>& features) const;

  /// The sum over the targets of a linear function of the target's loadings x on the first ten
  /// principal components of the unperturbed rows. For each feature, over the interventions that do
  /// not target it, it minimises
  ///
  ///     mean (response - sum over targets of (a + x w))^2 + strength sum w^2
  ///
  /// The strength is 100, 10, .. or 1e-5, the same for all features: the one with the lowest
  /// leave-one-out squared error over the learned interventions.
  at::Tensor linear(const std::vector<int64_t>& features) const;

 private:
  at::Tensor place(const std::vector<int64_t>& features) const;
  void fit(const PerturbationData& data, const at::Tensor& responses, const at::Tensor& own);

  at::Tensor mean_;                       // float64 [M], as all tensors below
  std::map<int64_t, at::Tensor> single_;  // the response of a feature's own intervention
  at::Tensor loadings_;                   // [M, components + 1], ones in the first column
  at::Tensor weights_;                    // [components + 1, M]
};

/// The names of the baselines in the order in which they are shown: `unchanged`, `mean response`,
/// `additive` and `linear`.
const std::vector<std::string>& perturbation_baseline_names();

/// The scores of a baseline by its name. Throws InputError for an unknown name.
PerturbationScores perturbation_baseline_scores(const std::string& name,
                                                const PerturbationData& data,
                                                const PerturbationOptions& options);

}  // namespace nsimplex::training

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

/// What does an intervention do to the other features? Learned from some interventions, asked of
/// others: gene perturbation prediction, on simulated data here, whose truth is known. What
/// perturbed_rows.h makes of a table of one's own has the same form.
namespace nsimplex::training {

struct PerturbationOptions {
  CausalSimulationOptions simulation;
  double dose = 3.0;          ///< do(x_p = mean + dose deviations)
  double unseen = 0.25;       ///< share of the features whose single interventions are asked for
  int64_t doubles = 20;       ///< pairs to learn from, of features that are not held out
  int64_t asked = 20;         ///< pairs to be asked for, of any features, none of them learned from
  int64_t rows = 64;          ///< observations of each intervention
  int64_t most_changed = 20;  ///< features that an answer is judged by
};

/// do() on one or two features, and what came of it.
struct Perturbation {
  std::vector<int64_t> features;
  at::Tensor after;   ///< float32 [rows, M]
  at::Tensor before;  ///< int64 [rows]: the row of `control` that each row is learned from
};

/// Columns are in deviations from the mean of the unperturbed observations. In simulated data row r
/// of every intervention is what would have become of row r of `control`.
struct PerturbationData {
  at::Tensor table;    ///< float64 [n, M], unperturbed, as it came: what structure is learned from
  at::Tensor graph;    ///< float64 [M, M], the truth; undefined where nobody knows it
  at::Tensor control;  ///< float32 [n, M]
  double dose;         ///< the value that a target gets
  int64_t starts;      ///< the first rows of `control`, which answers start from
  std::vector<Perturbation> learned, singles, doubles;

  /// Mean of the rows that answers start from, [M].
  at::Tensor before() const { return control.narrow(0, 0, starts).mean(0); }
};

/// Throws InputError that names the option where options cannot be used.
void check(const PerturbationOptions& options);

/// The same of the options that a table of one's own takes: `unseen` and `most_changed`.
void check_asking(const PerturbationOptions& options, int64_t features);

/// Draws a model by `seed`, unperturbed observations and interventions. Throws InputError as
/// check().
PerturbationData draw_perturbations(const PerturbationOptions& options, uint64_t seed);

/// Mean squared error of the mean change of the `most_changed` features, targets apart, averaged
/// over interventions. In squared deviations. NaN where nothing was asked.
struct PerturbationScores {
  double singles = 0.0, doubles = 0.0;
  /// Of the doubles with no, one or two targets whose single intervention was learned.
  std::array<double, 3> doubles_by_seen{};
};

/// Of a model of linear values: it sees an observation in which the targets have their new values
/// and are marked, and answers by reconstruct(). `checkpoint` is called before each batch; what it
/// throws ends it.
PerturbationScores perturbation_scores(FeatureTransformer& model, const PerturbationData& data,
                                       const PerturbationOptions& options,
                                       const std::function<void()>& checkpoint = {});

/// Of the answer that the mean of feature m changes by `response(features)[m]`, [M].
PerturbationScores response_scores(
    const PerturbationData& data, const PerturbationOptions& options,
    const std::function<at::Tensor(const std::vector<int64_t>& features)>& response);

/// Of the answer that nothing but the targets changes.
PerturbationScores unchanged_scores(const PerturbationData& data,
                                    const PerturbationOptions& options);

/// Learns the interventions data.learned, by the squared error of all features of every row.
void learn_perturbations(FeatureTransformer& model, const PerturbationData& data,
                         const FeatureTrainingOptions& options, uint64_t seed,
                         const FeatureEvents& events = {});

/// Simple answers to what an intervention does, which any model should be better than.

/// Answers that are made from the responses of the interventions to learn from, and from nothing
/// else. A response [M] is the mean of the rows after an intervention less the mean before it.
class PerturbationBaselines {
 public:
  explicit PerturbationBaselines(const PerturbationData& data);

  /// The mean of all responses; of each feature, over the interventions that do not target it.
  const at::Tensor& mean() const { return mean_; }

  /// Of two features, the sum of their own responses where both single interventions were learned;
  /// the mean of all responses otherwise.
  at::Tensor additive(const std::vector<int64_t>& features) const;

  /// The sum over the targets of a linear function of where a target lies among the first ten
  /// principal components of the unperturbed rows, of its loadings x. Minimises, for each feature
  /// over the interventions that do not target it,
  ///
  ///     mean (response - sum over targets of (a + x w))^2 + strength sum w^2
  ///
  /// The strength is 100, 10, .. or 1e-5, the same for all features: the one with the least squared
  /// error of interventions to learn from that are left out one by one.
  at::Tensor linear(const std::vector<int64_t>& features) const;

 private:
  at::Tensor place(const std::vector<int64_t>& features) const;
  void fit(const PerturbationData& data, const at::Tensor& responses, const at::Tensor& own);

  at::Tensor mean_;                       // float64 [M], as all below
  std::map<int64_t, at::Tensor> single_;  // the response of a feature's own intervention
  at::Tensor loadings_;                   // [M, components + 1], ones in the first column
  at::Tensor weights_;                    // [components + 1, M]
};

/// The names of the baselines in the order in which they are shown: `unchanged`, `mean response`,
/// `additive` and `linear`.
const std::vector<std::string>& perturbation_baseline_names();

/// Of a baseline by its name. Throws InputError for a name that is not there.
PerturbationScores perturbation_baseline_scores(const std::string& name,
                                                const PerturbationData& data,
                                                const PerturbationOptions& options);

}  // namespace nsimplex::training

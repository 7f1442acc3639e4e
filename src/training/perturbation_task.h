#pragma once

#include <nsimplex/causal_synthetic.h>
#include <nsimplex/feature_transformer.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "training/feature_training.h"

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

}  // namespace nsimplex::training

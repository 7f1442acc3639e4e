#pragma once

#include <nsimplex/causal_synthetic.h>
#include <nsimplex/feature_transformer.h>

#include <cstdint>
#include <vector>

#include "training/feature_training.h"

/// What does an intervention do to the other features? Learned from some interventions, asked of
/// others: gene perturbation prediction on simulated data, whose truth is known.
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
  at::Tensor after;  ///< float32 [rows, M]
};

/// Columns are in deviations from the mean of the unperturbed observations. Row r of every
/// intervention is what would have become of row r of `control`.
struct PerturbationData {
  at::Tensor table;  ///< float64 [n, M], unperturbed, as simulated: what structure is learned from
  at::Tensor graph;  ///< float64 [M, M], the truth
  at::Tensor control;  ///< float32 [n, M]
  double dose;
  std::vector<Perturbation> learned, singles, doubles;
};

/// Throws InputError that names the option where options cannot be used.
void check(const PerturbationOptions& options);

/// Draws a model by `seed`, unperturbed observations and interventions. Throws InputError as
/// check().
PerturbationData draw_perturbations(const PerturbationOptions& options, uint64_t seed);

/// Mean squared error of the mean change of the `most_changed` features, targets apart, averaged
/// over interventions. In squared deviations.
struct PerturbationScores {
  double singles = 0.0, doubles = 0.0;
};

/// Of a model of linear values: it sees an observation in which the targets have their new values
/// and are marked, and answers by reconstruct().
PerturbationScores perturbation_scores(FeatureTransformer& model, const PerturbationData& data,
                                       const PerturbationOptions& options);

/// Of the answer that nothing but the targets changes.
PerturbationScores unchanged_scores(const PerturbationData& data,
                                    const PerturbationOptions& options);

/// Learns the interventions data.learned, by the squared error of all features of every row.
void learn_perturbations(FeatureTransformer& model, const PerturbationData& data,
                         const FeatureTrainingOptions& options, uint64_t seed,
                         const FeatureEvents& events = {});

}  // namespace nsimplex::training

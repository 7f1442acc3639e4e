// Declares random causal graphs and structural equation models.

#pragma once

#include <nsimplex/causal_options.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal {

/// The edges of a random DAG as cause, effect, one after the other. Its causal order is a random
/// permutation of the nodes, so neither their numbers nor, in a scale-free graph, their ages reveal
/// it. ER: min(degree nodes, all pairs) edges, all sets of this size equally likely; SF:
/// graph::preferential_attachment(). The same seed gives the same graph on every machine.
std::vector<int64_t> random_dag(CausalGraph graph, int64_t nodes, int64_t degree, uint64_t seed);

/// f of x = f(causes) + noise.
class Mechanism {
 public:
  virtual ~Mechanism() = default;

  /// causes [n, k] -> [n]
  virtual Vector operator()(const Matrix& causes) const = 0;
};

/// A number uniform in +-[low, high].
double signed_weight(double low, double high, RandomStream& draws);

/// A mechanism of k = weights.size() causes, with its random parameters from `draws`. `weights` are
/// the coefficients of a linear one. For other kinds they only show which causes exist.
std::unique_ptr<Mechanism> make_mechanism(const CausalSimulationOptions& options, Vector weights,
                                          RandomStream& draws);

/// A number of mean 0 and standard deviation 1.
double draw_noise(CausalNoise noise, RandomStream& draws);

/// A structural equation model (nsimplex/causal.h): drawn once, then observed any number of times.
class StructuralModel {
 public:
  /// On a random graph of the options. Throws InputError that names the option.
  explicit StructuralModel(const CausalSimulationOptions& options);

  /// On a given graph: nonzero entries are edges. Also throws InputError for one with a cycle.
  StructuralModel(const Matrix& graph, const CausalSimulationOptions& options);

  int64_t features() const { return weights_.rows(); }

  /// [M, M]: coefficients of linear mechanisms. For others, numbers of the same distribution that
  /// only show which edges exist.
  const Matrix& weights() const { return weights_; }

  /// A table [observations, M]. The noise of row r and column j depends only on the seeds, r and j.
  Matrix sample(int64_t observations, int64_t sample_seed,
                std::span<const Intervention> interventions) const;

 private:
  struct Equation {
    int64_t effect;
    std::vector<int64_t> causes;
    std::unique_ptr<Mechanism> mechanism;
    double deviation;  // of the noise
  };

  CausalNoise noise_;
  int64_t width_;  // numbers per row that a mechanism holds at once
  uint64_t seed_;
  Matrix weights_;
  std::vector<Equation> equations_;  // in causal order
};

}  // namespace nsimplex::causal

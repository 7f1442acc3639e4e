#pragma once

#include <nsimplex/causal_options.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal {

/// cause, effect of each edge of a random DAG, one after the other. Its causal order is a random
/// permutation of the nodes, so that neither their numbers nor, in a scale free graph, their ages
/// tell it. ER: min(degree nodes, all pairs) edges, every set of so many pairs as likely;
/// SF: graph::preferential_attachment(). The same on every machine for the same seed.
std::vector<int64_t> random_dag(CausalGraph graph, int64_t nodes, int64_t degree, uint64_t seed);

/// f of x = f(causes) + noise.
class Mechanism {
 public:
  virtual ~Mechanism() = default;

  /// causes [n, k] -> [n]
  virtual Vector operator()(const Matrix& causes) const = 0;
};

/// A number of +-[low, high], every one as likely.
double signed_weight(double low, double high, RandomStream& draws);

/// A mechanism of k = weights.size() causes; what it needs besides comes from `draws`. `weights`
/// are the coefficients of a linear one; other kinds show only in them which causes there are.
std::unique_ptr<Mechanism> make_mechanism(const CausalSimulationOptions& options, Vector weights,
                                          RandomStream& draws);

/// A number of mean 0 and standard deviation 1.
double draw_noise(CausalNoise noise, RandomStream& draws);

/// A structural equation model (nsimplex/causal.h): drawn once, then observed as often as
/// one likes.
class StructuralModel {
 public:
  /// On a random graph of the options. Throws InputError that names the option.
  explicit StructuralModel(const CausalSimulationOptions& options);

  /// On a given one: entries other than 0 are edges. Throws InputError for one with a cycle, too.
  StructuralModel(const Matrix& graph, const CausalSimulationOptions& options);

  int64_t features() const { return weights_.rows(); }

  /// [M, M]: coefficients of linear mechanisms, elsewhere numbers of the same distribution that
  /// only say which edges there are.
  const Matrix& weights() const { return weights_; }

  /// A table [observations, M]. The noise of row r and column j depends on the seeds, r and j
  /// alone.
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
  uint64_t seed_;
  Matrix weights_;
  std::vector<Equation> equations_;  // in causal order
};

}  // namespace nsimplex::causal

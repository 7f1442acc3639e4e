#pragma once

#include <nsimplex/causal_synthetic_options.h>

#include <memory>
#include <span>
#include <vector>

#include "causal/matrix.h"
#include "causal/synthetic/mechanisms.h"

namespace nsimplex::causal {

/// A structural equation model (nsimplex/causal_synthetic.h): drawn once, then observed as often as
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

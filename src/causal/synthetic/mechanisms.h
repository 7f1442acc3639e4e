#pragma once

#include <nsimplex/causal_synthetic_options.h>

#include <memory>
#include <utility>

#include "causal/matrix.h"
#include "support/random.h"

namespace nsimplex::causal {

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

}  // namespace nsimplex::causal

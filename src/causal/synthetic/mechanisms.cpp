#include "causal/synthetic/mechanisms.h"

#include <cmath>
#include <numbers>

namespace nsimplex::causal {
namespace {

constexpr Eigen::Index kHiddenUnits = 100;  // of the published protocol
constexpr Eigen::Index kFeatures =
    256;  // of a Gaussian process: errors of its kernel are 1 / sqrt(256)

class Linear : public Mechanism {
 public:
  explicit Linear(Vector weights) : weights_(std::move(weights)) {}
  Vector operator()(const Matrix& causes) const override { return causes * weights_; }

 private:
  Vector weights_;
};

class Mlp : public Mechanism {
 public:
  Mlp(Eigen::Index causes, double low, double high, RandomStream& draws)
      : hidden_(causes, kHiddenUnits), output_(kHiddenUnits) {
    for (double& weight : hidden_.reshaped<Eigen::RowMajor>()) {
      weight = signed_weight(low, high, draws);
    }
    for (double& weight : output_) weight = signed_weight(low, high, draws);
  }
  Vector operator()(const Matrix& causes) const override {
    const Matrix logits = causes * hidden_;
    return ((-logits.array()).exp() + 1.0).inverse().matrix() * output_;
  }

 private:
  Matrix hidden_;
  Vector output_;
};

// A function drawn from a Gaussian process is a_1 cos(w_1 x + b_1) + .. with normal a and w and
// uniform b (Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007):
// one that can be asked anywhere, as interventions need it, where draws at given points cannot.
class AdditiveProcess : public Mechanism {
 public:
  AdditiveProcess(Eigen::Index causes, RandomStream& draws)
      : frequencies_(causes, kFeatures),
        phases_(causes, kFeatures),
        amplitudes_(causes, kFeatures) {
    const double scale = std::sqrt(2.0 / static_cast<double>(kFeatures));
    for (Eigen::Index cause = 0; cause < causes; ++cause) {
      for (Eigen::Index k = 0; k < kFeatures; ++k) {
        frequencies_(cause, k) = draws.normal();
        phases_(cause, k) = 2 * std::numbers::pi * draws.unit();
        amplitudes_(cause, k) = scale * draws.normal();
      }
    }
  }
  Vector operator()(const Matrix& causes) const override {
    Vector sum = Vector::Zero(causes.rows());
    for (Eigen::Index cause = 0; cause < causes.cols(); ++cause) {
      const Matrix angles =
          (causes.col(cause) * frequencies_.row(cause)).rowwise() + phases_.row(cause);
      sum += angles.array().cos().matrix() * amplitudes_.row(cause).transpose();
    }
    return sum;
  }

 private:
  Matrix frequencies_, phases_, amplitudes_;
};

}  // namespace

double signed_weight(double low, double high, RandomStream& draws) {
  const double size = low + (high - low) * draws.unit();
  return draws.below(2) == 0 ? -size : size;
}

std::unique_ptr<Mechanism> make_mechanism(const CausalSimulationOptions& options, Vector weights,
                                          RandomStream& draws) {
  switch (options.mechanism) {
    case CausalMechanism::mlp:
      return std::make_unique<Mlp>(weights.size(), options.weight_low, options.weight_high, draws);
    case CausalMechanism::additive_gp:
      return std::make_unique<AdditiveProcess>(weights.size(), draws);
    case CausalMechanism::linear:
      break;
  }
  return std::make_unique<Linear>(std::move(weights));
}

double draw_noise(CausalNoise noise, RandomStream& draws) {
  switch (noise) {
    case CausalNoise::exponential:
      return draws.exponential() - 1.0;
    case CausalNoise::gumbel:  // mean: Euler's constant, variance pi^2 / 6
      return (-std::log(draws.exponential()) - std::numbers::egamma) * std::sqrt(6.0) /
             std::numbers::pi;
    case CausalNoise::gaussian:
      break;
  }
  return draws.normal();
}

}  // namespace nsimplex::causal

// Declares AdamW and the schedule of its rate.

#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::training {

/// A module's parameters by name. The tensors share memory with the module.
std::vector<io::NamedTensor> named_parameters(const torch::nn::Module& module);

/// The total number of entries of the parameters.
int64_t parameter_count(const torch::nn::Module& module);

/// Linear warm-up, then half a cosine to a floor:
///
///     rate(t) = peak (t + 1) / (warmup + 1)                                    t < warmup
///             = floor + (peak - floor) (1 + cos(pi (t - warmup) / (steps - 1 - warmup))) / 2 after
///
/// for step t = 0 .. steps - 1. The first rate is not zero, the rate reaches the peak at t = warmup
/// and the floor at the last step. (Loshchilov, Hutter, "SGDR", ICLR 2017.)
struct Schedule {
  double peak, floor;
  int64_t warmup, steps;

  double rate(int64_t step) const {
    if (step < warmup)
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    const double length = static_cast<double>(std::max<int64_t>(steps - 1 - warmup, 1));
    const double done = std::min(static_cast<double>(step - warmup) / length, 1.0);
    return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.99, eps = 1e-8, weight_decay = 0.1;
};

/// Whether weight decay applies. It applies to matrices that mix channels. It does not apply to
/// biases and gains (which have one axis) and to embeddings (rows of rare tokens would only
/// shrink).
bool decays(const std::string& name, const at::Tensor& parameter);

/// AdamW (Loshchilov, Hutter, ICLR 2019) with decoupled weight decay for a group of parameters of
/// its own, and clipping of the gradient's global norm. One fused ATen call per group updates all
/// its parameters.
class AdamW {
 public:
  AdamW(std::vector<io::NamedTensor> parameters, const AdamWOptions& options);

  /// Removes the gradients, so that the next backward pass makes new ones.
  void zero_grad();

  /// The 2-norm of all gradients together.
  double gradient_norm() const;

  /// One update. Gradients are divided by `gradient_divisor` first. Parameters without a gradient
  /// do not change.
  void step(double learning_rate, double gradient_divisor = 1.0);

  /// Moments and step count by name. The tensors share memory with the optimiser.
  std::vector<io::NamedTensor> state() const;

 private:
  struct Group {
    double weight_decay;
    std::vector<io::NamedTensor> parameters;
    std::vector<at::Tensor> mean, variance;
  };

  AdamWOptions options_;
  Group groups_[2];
  at::Tensor steps_;  // scalar fp32, as the fused update requires
};

/// All weights of a module by name, including buffers.
std::vector<io::NamedTensor> named_weights(const torch::nn::Module& module);

}  // namespace nsimplex::training

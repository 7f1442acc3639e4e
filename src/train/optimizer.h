// Declares AdamW, learning-rate schedules and the moving average of weights.

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

/// The same warm-up, then a constant rate or a linear decay that would reach 0 one step after the
/// last:
///
///     rate(t) = peak (t + 1) / (warmup + 1)                    t < warmup
///             = peak                                           after, constant
///             = peak (steps - t) / (steps - warmup)            after, decaying
///
/// With a limit of time, a decaying rate also reaches 0 at the end of the time: it is at most peak
/// (1 - spent), where `spent` is the used share.
struct LinearSchedule {
  double peak;
  int64_t warmup, steps;
  bool decays;

  double rate(int64_t step, double spent = 0.0) const {
    if (step < warmup) {
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    }
    if (!decays) return peak;
    const double left = static_cast<double>(std::max<int64_t>(steps - step, 0)) /
                        static_cast<double>(std::max<int64_t>(steps - warmup, 1));
    return peak * std::min(left, std::max(1 - spent, 0.0));
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

/// All weights of a module by name, including buffers, in the order of copy_of_weights().
std::vector<io::NamedTensor> named_weights(const torch::nn::Module& module);

/// Copies of all weights of a module, including buffers.
std::vector<at::Tensor> copy_of_weights(const torch::nn::Module& module);

/// Restores the weights that copy_of_weights() returned.
void restore_weights(const torch::nn::Module& module, const std::vector<at::Tensor>& copies);

/// Exponential moving average of a module's parameters, which often gives better predictions than
/// the parameters themselves (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992, in the form of
/// Adam's paper, section 7.2). After update t
///
///     a_t = d_t a_{t-1} + (1 - d_t) w_t,  d_t = min(decay, (1 + t) / (10 + t)),
///
/// from a_0 = w_0. The second bound reduces the weight of the beginning. Buffers (statistics of a
/// batch normalisation, random features) are not averaged. It takes the memory of one copy of the
/// parameters.
class WeightAverage {
 public:
  WeightAverage(const torch::nn::Module& module, double decay);

  /// Adds the module's parameters to the average, after an update of them.
  void add();

  /// The average. The tensors share memory with this object. To continue from another average, copy
  /// its numbers into them and set the number of `updates`.
  const std::vector<at::Tensor>& tensors() const { return average_; }
  void continue_after(int64_t updates) { updates_ = updates; }

  /// Exchanges the average with the module's parameters.
  void swap();

 private:
  std::vector<at::Tensor> parameters_, average_;
  double decay_;
  int64_t updates_ = 0;
};

/// Puts the average in the place of the module's parameters during its lifetime. Without an average
/// it does nothing.
class AverageInPlace {
 public:
  explicit AverageInPlace(WeightAverage* average) : average_(average) {
    if (average_ != nullptr) average_->swap();
  }
  ~AverageInPlace() {
    if (average_ != nullptr) average_->swap();
  }
  AverageInPlace(const AverageInPlace&) = delete;
  AverageInPlace& operator=(const AverageInPlace&) = delete;

 private:
  WeightAverage* average_;
};

}  // namespace nsimplex::training

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

/// A module's parameters by their names; they share memory with it.
std::vector<io::NamedTensor> named_parameters(const torch::nn::Module& module);

/// How many numbers the parameters hold.
int64_t parameter_count(const torch::nn::Module& module);

/// Linear warm-up, then half a cosine down to a floor:
///
///   rate(t) = peak (t + 1) / (warmup + 1)                                    t < warmup
///           = floor + (peak - floor) (1 + cos(pi (t - warmup) / (steps - 1 - warmup))) / 2 after
///
/// for step t = 0 .. steps - 1: the first update is not zero, the peak is reached at t = warmup,
/// the floor at the last step. (Loshchilov, Hutter, "SGDR", ICLR 2017.)
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

/// The same warm-up, then a constant rate or a line that would reach 0 one step after the last:
///
///   rate(t) = peak (t + 1) / (warmup + 1)                    t < warmup
///           = peak                                           after, constant
///           = peak (steps - t) / (steps - warmup)            after, decaying
///
/// A line also reaches 0 with the end of a budget of time, of which the share `spent` is gone:
/// there it is at most peak (1 - spent).
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

/// Whether weight decay applies: to matrices that mix channels, and not to biases and gains (which
/// have one axis) nor to embeddings (a row that is rare in the text would only ever shrink).
bool decays(const std::string& name, const at::Tensor& parameter);

/// AdamW (Loshchilov, Hutter, ICLR 2019) with decoupled weight decay on a group of its own and
/// clipping of the gradient's global norm. One fused ATen call a group updates all its parameters.
class AdamW {
 public:
  AdamW(std::vector<io::NamedTensor> parameters, const AdamWOptions& options);

  /// Forgets the gradients, so that the next backward pass makes them.
  void zero_grad();

  /// 2-norm of all gradients together.
  double gradient_norm() const;

  /// One update; gradients are divided by `gradient_divisor` first. Parameters without a gradient
  /// stay.
  void step(double learning_rate, double gradient_divisor = 1.0);

  /// Moments and step count, under names of their own; tensors share memory with the optimiser.
  std::vector<io::NamedTensor> state() const;

 private:
  struct Group {
    double weight_decay;
    std::vector<io::NamedTensor> parameters;
    std::vector<at::Tensor> mean, variance;
  };

  AdamWOptions options_;
  Group groups_[2];
  at::Tensor steps_;  // scalar fp32, as the fused update takes it
};

/// All that a module has learned by name, buffers included, in the order of copy_of_weights().
std::vector<io::NamedTensor> named_weights(const torch::nn::Module& module);

/// Copies of all that a module has learned, buffers included.
std::vector<at::Tensor> copy_of_weights(const torch::nn::Module& module);

/// Gives a module back what copy_of_weights took of it.
void restore_weights(const torch::nn::Module& module, const std::vector<at::Tensor>& copies);

/// Exponential moving average of a module's parameters, which often answers better than they do
/// (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992, in the form of Adam's paper, section
/// 7.2). After update t
///
///     a_t = d_t a_{t-1} + (1 - d_t) w_t,  d_t = min(decay, (1 + t) / (10 + t)),
///
/// from a_0 = w_0: the second bound forgets the beginning while there is little to average. Buffers
/// (statistics of a batch normalisation, random features) are not averaged. Memory of one copy of
/// the parameters.
class WeightAverage {
 public:
  WeightAverage(const torch::nn::Module& module, double decay);

  /// Takes the module's parameters in, after an update of them.
  void add();

  /// The average, which shares memory with this. To go on from another one: its numbers are copied
  /// there, and `updates` behind it are told.
  const std::vector<at::Tensor>& tensors() const { return average_; }
  void continue_after(int64_t updates) { updates_ = updates; }

  /// Exchanges the average and the module's parameters.
  void swap();

 private:
  std::vector<at::Tensor> parameters_, average_;
  double decay_;
  int64_t updates_ = 0;
};

/// Has the average in the place of the module's parameters for as long as it lives; without one it
/// does nothing.
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

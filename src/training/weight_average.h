#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::training {

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

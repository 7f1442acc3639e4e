#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::training {

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

}  // namespace nsimplex::training

#include "training/weight_average.h"

#include <c10/core/GradMode.h>

#include <algorithm>

namespace nsimplex::training {
namespace {

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& each : tensors) copies.push_back(each.detach().clone());
  return copies;
}

std::vector<at::Tensor> weights_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> weights = module.parameters();
  const std::vector<at::Tensor> buffers = module.buffers();
  weights.insert(weights.end(), buffers.begin(), buffers.end());
  return weights;
}

}  // namespace

std::vector<io::NamedTensor> named_weights(const torch::nn::Module& module) {
  std::vector<io::NamedTensor> named;
  for (const auto& each : module.named_parameters()) {
    named.push_back({"parameter." + each.key(), each.value()});
  }
  for (const auto& each : module.named_buffers()) {
    named.push_back({"buffer." + each.key(), each.value()});
  }
  return named;
}

std::vector<at::Tensor> copy_of_weights(const torch::nn::Module& module) {
  return copies_of(weights_of(module));
}

void restore_weights(const torch::nn::Module& module, const std::vector<at::Tensor>& copies) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> weights = weights_of(module);
  for (size_t i = 0; i < weights.size(); ++i) weights[i].copy_(copies[i]);
}

WeightAverage::WeightAverage(const torch::nn::Module& module, double decay)
    : parameters_(module.parameters()), average_(copies_of(parameters_)), decay_(decay) {}

void WeightAverage::add() {
  const at::NoGradGuard no_grad;
  const auto t = static_cast<double>(++updates_);
  const double share = 1 - std::min(decay_, (1 + t) / (10 + t));
  for (size_t i = 0; i < average_.size(); ++i) average_[i].lerp_(parameters_[i], share);
}

void WeightAverage::swap() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < average_.size(); ++i) {
    const at::Tensor parameter = parameters_[i].detach().clone();
    parameters_[i].copy_(average_[i]);
    average_[i].copy_(parameter);
  }
}

}  // namespace nsimplex::training

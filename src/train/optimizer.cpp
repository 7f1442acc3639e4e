// Updates weights by AdamW.

#include "train/optimizer.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>

namespace nsimplex::training {

std::vector<io::NamedTensor> named_parameters(const torch::nn::Module& module) {
  std::vector<io::NamedTensor> parameters;
  for (const auto& each : module.named_parameters())
    parameters.push_back({each.key(), each.value()});
  return parameters;
}

int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& each : module.parameters()) count += each.numel();
  return count;
}

bool decays(const std::string& name, const at::Tensor& parameter) {
  return parameter.dim() >= 2 && name.find("embedding") == std::string::npos;
}

AdamW::AdamW(std::vector<io::NamedTensor> parameters, const AdamWOptions& options)
    : options_(options), groups_{{options.weight_decay, {}, {}, {}}, {0.0, {}, {}, {}}} {
  TORCH_CHECK(!parameters.empty(), "[AdamW] no parameters");
  steps_ = at::zeros({}, parameters[0].tensor.options().dtype(at::kFloat).requires_grad(false));
  for (io::NamedTensor& each : parameters) {
    Group& group = groups_[decays(each.name, each.tensor) ? 0 : 1];
    group.mean.push_back(at::zeros_like(each.tensor));
    group.variance.push_back(at::zeros_like(each.tensor));
    group.parameters.push_back(std::move(each));
  }
}

void AdamW::zero_grad() {
  for (Group& group : groups_) {
    for (io::NamedTensor& each : group.parameters) each.tensor.mutable_grad().reset();
  }
}

double AdamW::gradient_norm() const {
  std::vector<at::Tensor> gradients;
  for (const Group& group : groups_) {
    for (const io::NamedTensor& each : group.parameters) {
      if (each.tensor.grad().defined()) gradients.push_back(each.tensor.grad());
    }
  }
  if (gradients.empty()) return 0.0;
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients))).item<double>();
}

void AdamW::step(double learning_rate, double gradient_divisor) {
  const at::NoGradGuard no_grad;
  steps_.add_(1);
  // The fused update divides the gradients itself, so clipping needs no pass over them.
  std::optional<at::Tensor> divisor;
  if (gradient_divisor != 1.0) divisor = at::full({}, gradient_divisor, steps_.options());
  for (Group& group : groups_) {
    std::vector<at::Tensor> parameters, gradients, mean, variance;
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor& parameter = group.parameters[i].tensor;
      if (!parameter.grad().defined()) continue;
      parameters.push_back(parameter);
      gradients.push_back(parameter.grad());
      mean.push_back(group.mean[i]);
      variance.push_back(group.variance[i]);
    }
    if (parameters.empty()) continue;
    const std::vector<at::Tensor> steps(parameters.size(), steps_);
    at::_fused_adamw_(parameters, gradients, mean, variance, {}, steps, learning_rate,
                      options_.beta1, options_.beta2, group.weight_decay, options_.eps,
                      /*amsgrad=*/false,
                      /*maximize=*/false, divisor);
  }
}

std::vector<io::NamedTensor> AdamW::state() const {
  std::vector<io::NamedTensor> state = {{"steps", steps_}};
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      state.push_back({"mean." + group.parameters[i].name, group.mean[i]});
      state.push_back({"variance." + group.parameters[i].name, group.variance[i]});
    }
  }
  return state;
}

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

}  // namespace nsimplex::training

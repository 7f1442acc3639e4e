#include "training/parameters.h"

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

}  // namespace nsimplex::training

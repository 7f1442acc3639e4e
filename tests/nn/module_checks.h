#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "input_error_of.h"

namespace nsimplex::test {

/// Names of a module's parameters, in their order.
inline std::vector<std::string> names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) names.push_back(item.key());
  return names;
}

}  // namespace nsimplex::test

#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "support/error.h"

namespace nsimplex::test {

/// Names of a module's parameters, in their order.
inline std::vector<std::string> names(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) names.push_back(item.key());
  return names;
}

/// What an InputError says that `make` throws.
template <class Make>
std::string input_error_of(Make&& make) {
  try {
    make();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace nsimplex::test

#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::training {

/// A module's parameters by their names; they share memory with it.
std::vector<io::NamedTensor> named_parameters(const torch::nn::Module& module);

/// How many numbers the parameters hold.
int64_t parameter_count(const torch::nn::Module& module);

}  // namespace nsimplex::training

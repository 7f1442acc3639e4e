// Checks of inputs that several functions of this folder share.

#pragma once

#include <ATen/ATen.h>

#include "support/plain_tensor.h"
#include "support/require.h"

namespace nsimplex::analysis {

/// Throws InputError unless all are floating [B, .., C] with the same B.
inline void check_problems(const char* name, const std::vector<at::Tensor>& inputs) {
  require(!inputs.empty(), name, ": expected an input or more, got none");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& x = inputs[i];
    require(is_floating(x) && x.dim() >= 2 && x.numel() > 0, name, ": input ", i,
            ": expected floating [B, .., C] that is not empty, got ", x.scalar_type(), " ",
            x.sizes());
    require(x.size(0) == inputs[0].size(0), name, ": input ", i, ": expected ", inputs[0].size(0),
            " problems as in the first one, got ", x.size(0));
  }
}

inline void check_positive(const char* name, const char* argument, double value) {
  require(value > 0, name, ": ", argument, ": expected a positive number, got ", value);
}

/// Runs a function of nsimplex/analysis.h for an operator. Its InputError, which names the function,
/// becomes a c10::ValueError.
template <class Call>
auto as_operator(Call&& call) {
  try {
    return call();
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

}  // namespace nsimplex::analysis

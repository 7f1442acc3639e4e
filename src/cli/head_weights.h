#pragma once

#include <fmt/format.h>

#include <string>

#include "analysis/collapse.h"
#include "io/safetensors.h"

namespace nsimplex::cli {

/// The weights of a head for a counterexample: PREFIXkey_weight.0 .. N, PREFIXvalue_weight.1 .. N,
/// PREFIXoutput_weight.
inline void add_weights(io::Safetensors& file, const std::string& prefix,
                        const analysis::PureHead& head) {
  for (size_t m = 0; m < head.keys.size(); ++m) {
    file.tensors.push_back({fmt::format("{}key_weight.{}", prefix, m), head.keys[m]});
  }
  for (size_t m = 0; m < head.values.size(); ++m) {
    file.tensors.push_back({fmt::format("{}value_weight.{}", prefix, m + 1), head.values[m]});
  }
  if (head.output) file.tensors.push_back({prefix + "output_weight", *head.output});
}

}  // namespace nsimplex::cli

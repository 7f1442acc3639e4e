#pragma once

#include <nsimplex/attention.h>

#include <cstdint>
#include <vector>

#include "cli/attention_case.h"

namespace nsimplex::cli {

struct AttentionInputs {
  at::Tensor query;                      ///< [batch, heads, seq, dim]
  std::vector<at::Tensor> keys, values;  ///< [batch, kv_heads, T_m, dim or value_dim]
  at::Tensor grad_out;                   ///< [batch, heads, seq, value_dim]
  AttentionOptions options;
};

/// Random inputs of a completed case; the same seed gives the same numbers in every dtype
/// (rounded).
AttentionInputs make_inputs(const AttentionCase& shape, uint64_t seed);

}  // namespace nsimplex::cli

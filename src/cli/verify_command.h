#pragma once

#include <string>

#include "cli/attention_case.h"

namespace nsimplex::cli {

/// An error beside the largest one that is allowed, of the tensor that comes nearest to its limit.
struct Deviation {
  std::string tensor;  ///< "out", "lse", "query", "key 1", ...
  double error = 0, limit = 0;
  bool passed() const { return error <= limit; }  // false for NaN
};

struct CaseResult {
  Deviation forward, backward;
  bool empty_rows_right = true;  ///< queries without a tuple: output 0, lse -inf, gradient 0
  bool same_bits = true;         ///< twice, and with one thread and with all
  bool passed() const {
    return forward.passed() && backward.passed() && empty_rows_right && same_bits;
  }
};

/// Holds the dense operator, both outputs and every gradient, against its plain version in fp64.
///
/// err(x) = |x - x64|_2 / |x64|_2 over a tensor must be at most 2 err_plain + 4 eps sqrt(log2
/// #tuples), where err_plain is the error of the plain version in the case's own dtype and #tuples
/// the most that a query has; in fp32 besides at most 2e-5 forward and 1e-4 for gradients where
/// logits are moderate.
CaseResult verify_attention(const AttentionCase& shape, uint64_t seed);

}  // namespace nsimplex::cli

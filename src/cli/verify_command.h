// Declares the check of dense attention against a double-precision reference.

#pragma once

#include <string>

#include "cli/attention_case.h"

namespace nsimplex::cli {

/// The error and its limit, for the tensor that is closest to its limit.
struct Deviation {
  std::string tensor;  ///< "out", "lse", "query", "key 1", ...
  double error = 0, limit = 0;
  bool passed() const { return error <= limit; }  // false for NaN
};

struct CaseResult {
  Deviation forward, backward;
  bool empty_rows_right = true;  ///< queries without a tuple: output 0, lse -inf, gradient 0
  bool same_bits = true;         ///< in two runs, and with one thread and with all
  bool passed() const {
    return forward.passed() && backward.passed() && empty_rows_right && same_bits;
  }
};

/// Compares both outputs and every gradient of the dense operator with its plain version in fp64.
///
/// err(x) = |x - x64|_2 / |x64|_2 over a tensor must be at most 2 err_plain + 4 eps sqrt(log2
/// #tuples). err_plain is the error of the plain version in the case's own dtype, and #tuples the
/// largest number that a query has. In fp32 with moderate logits it must also be at most 2e-5
/// forward and 1e-4 for gradients.
CaseResult verify_attention(const AttentionCase& shape, uint64_t seed);

}  // namespace nsimplex::cli

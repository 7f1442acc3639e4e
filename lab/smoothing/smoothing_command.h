#pragma once

#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "support/random.h"

namespace nsimplex::cli {

/// Draws a head of this order and a few tokens, scales over two decades, tokens near to each other
/// or not, and puts Theorem 3.1, the lemmas of its proof and ||1 u^T|| <= ||X|| to the test. What
/// rounding decides has no part. Weights are drawn from torch's generator.
///
/// {draw: "theorem", order, tokens, dim, norm, residual, next_residual, bound, gamma, logit_range,
/// assumption, floor}
Json test_theorem(int64_t order, RandomStream& random, Verdicts& verdicts);

/// Corollary 3.2 on one to three layers of one to three heads, both sides as logarithms; its slack
/// is their difference. What reaches the floor of float64 has no part.
///
/// {draw: "stack", order, tokens, dim, layers, heads, log_residual, log_bound, logit_range,
/// assumption, floor}
Json test_corollary(int64_t order, RandomStream& random, Verdicts& verdicts);

/// Lemmas C.1 and C.2 on the derivatives of a head, with N and with N + 1 factors, and the bound of
/// a logit's derivative that the second is made of:
///
/// {draw: "derivatives", order, tokens, dim, radius, values, weights, logits}: the largest norms.
Json test_derivatives(int64_t order, RandomStream& random, Verdicts& verdicts);

}  // namespace nsimplex::cli

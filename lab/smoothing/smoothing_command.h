// Declares random tests of the theorems on collapse.

#pragma once

#include "cli/output.h"
#include "lab/common/verdicts.h"
#include "support/random.h"

namespace nsimplex::cli {

/// Draws a head of this order and a few tokens (scales over two decades, tokens close to each other
/// or not) and tests Theorem 3.1, the lemmas of its proof and ||1 u^T|| <= ||X||. Draws that
/// rounding decides are skipped. Weights come from torch's generator.
///
/// {draw: "theorem", order, tokens, dim, norm, residual, next_residual, bound, gamma, logit_range,
/// assumption, floor}
Json test_theorem(int64_t order, RandomStream& random, Verdicts& verdicts);

/// Tests Corollary 3.2 on one to three layers of one to three heads, with both sides as logarithms;
/// the slack is their difference. Draws that reach the floor of float64 are skipped.
///
/// {draw: "stack", order, tokens, dim, layers, heads, log_residual, log_bound, logit_range,
/// assumption, floor}
Json test_corollary(int64_t order, RandomStream& random, Verdicts& verdicts);

/// Tests Lemmas C.1 and C.2 on the derivatives of a head, with N and with N + 1 factors, and the
/// bound of a logit's derivative that the second one uses:
///
/// {draw: "derivatives", order, tokens, dim, radius, values, weights, logits}: the largest norms.
Json test_derivatives(int64_t order, RandomStream& random, Verdicts& verdicts);

}  // namespace nsimplex::cli

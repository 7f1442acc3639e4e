#pragma once

#include <nsimplex/export.h>

#include <functional>
#include <vector>

#include "analysis/statement.h"

namespace nsimplex::analysis {

struct PropositionOptions {
  int64_t order = 2, dim = 4, tokens = 3;
  int64_t draws = 1000;
};

/// What Cesista, "Sensitivity and Sharpness of n-Simplicial Attention", proves on the way, each put
/// to the test on as many random draws (torch's generator) of rows of unit root mean square:
/// Proposition 5, Lemma 6, the three inequalities of Proposition 8, |Bx| <= |B| |x|, the bounds on
/// dV, dK, dA, d2V and d2A with the scales of Scale::unit; and whether d2A and d2V are what is
/// printed, which they are for N = 1 only, d2A with the term that is left out.
NSIMPLEX_API std::vector<Statement> test_propositions(const PropositionOptions& options);

}  // namespace nsimplex::analysis

// Declares the points and growth statements of `lab lipschitz`.

#pragma once

#include <vector>

#include "analysis/statement.h"
#include "cli/output.h"

namespace nsimplex::cli {

/// A point of a sweep over N-simplicial attention.
struct LipschitzPoint {
  int64_t order = 1, tokens = 1, dim = 1;
  double radius = 1;
  double constant = 0;  ///< median of the empirical constants of the draws
};

struct GrowthStatement {
  analysis::Statement statement;
  Json figures;  ///< further values
};

/// The claims of "How Smoothing is N-simplicial Attention?" on the growth of the constant of one
/// order. A draw is a line of points that differ only in tokens, width or radius. The exponent in
/// the tokens is at most 3/2 and not above that of order 1. The exponent in the width is at most
/// 1/2. The constant goes to zero with the radius as R^(N-1), so not at all for N = 1, and it grows
/// for large radii. Lines of order 1 are used for other orders; points of other orders than these
/// are not.
std::vector<GrowthStatement> lipschitz_growth(const std::vector<LipschitzPoint>& points,
                                              int64_t order);

}  // namespace nsimplex::cli

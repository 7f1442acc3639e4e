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
  Json figures;  ///< what else there is to say of it
};

/// What "How Smoothing is N-simplicial Attention?" says of how the constant of one order grows, a
/// draw being a line of points that differ in one of tokens, width and radius alone: its exponent
/// in the tokens is 3/2 at most, and not above that of order 1; that in the width is 1/2 at most;
/// it goes to zero with the radius as R^(N-1), so not at all for N = 1; and it grows where the
/// radius is large. Lines of order 1 are used for other orders, points of other orders than these
/// are not.
std::vector<GrowthStatement> lipschitz_growth(const std::vector<LipschitzPoint>& points,
                                              int64_t order);

}  // namespace nsimplex::cli

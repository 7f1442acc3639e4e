#pragma once

#include <functional>
#include <vector>

#include "causal/structure/covariance.h"

namespace nsimplex::causal {

/// [M, M] flags, symmetric: whether the l1 regression of one of two columns on all others takes the
/// other. Every cause and effect of a column, and the other causes of its effects, are what its
/// regression needs; so a graph is looked for among few edges and not M^2.
///
/// The penalty of a column is its residual standard deviation times those of the causes times
/// sqrt(log M / n) / 2, found together with the coefficients (scaled lasso), so that
/// units and noises are of no matter. Complexity: O(M) a coordinate that moves, M regressions.
///
/// Sources: Meinshausen, Buehlmann, "High-dimensional graphs and variable selection with the
/// lasso", Annals of Statistics 2006; Sun, Zhang, "Scaled sparse linear regression", Biometrika
/// 2012.
std::vector<char> neighbourhoods(const Covariance& covariance,
                                 const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal

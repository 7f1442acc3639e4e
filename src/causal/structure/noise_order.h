// Declares an order of columns by noise that is not Gaussian.

#pragma once

#include <Eigen/Core>

#include <functional>

#include "causal/structure/order_search.h"

namespace nsimplex::causal {

/// The share of a column's variance that a noise has at least.
inline constexpr double kLeastNoise = 1e-12;

/// How far values with mean 0 and variance 1 are from a normal variable: 79.047 (mean log cosh u -
/// 0.37457)^2 + 7.4129 (mean u exp(-u^2 / 2))^2.
///
/// Source: Hyvaerinen, "New approximations of differential entropy", NIPS 1998.
double negentropy(const Eigen::ArrayXd& values);

/// The columns of a table `rest` [n, M] from causes to effects. Next comes the one whose regressions explain
/// the others best by independent noises, and then the others lose their part of it. Columns wait for
/// those that must precede them. Empty once `go_on`, which is asked before each column, is false.
/// Complexity: O(M^3 n).
///
/// Source: Shimizu et al., "DirectLiNGAM", JMLR 2011.
Order noise_order(Eigen::MatrixXd rest, const Precedence& precedence,
                  const std::function<bool()>& go_on);

}  // namespace nsimplex::causal

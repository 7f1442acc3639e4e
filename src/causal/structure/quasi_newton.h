// Declares the minimiser of a smooth function plus an l1 norm.

#pragma once

#include <functional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Returns the value at a point and writes the gradient into the second argument. Outside the
/// domain the value is +infinity, with any gradient.
using SmoothFunction = std::function<double(const Vector& point, Vector& gradient)>;

struct QuasiNewtonOptions {
  int64_t iterations = 1000;  ///< largest number
  double tolerance = 1e-7;    ///< relative decrease over ten iterations that ends the search
  int64_t memory = 10;        ///< number of pairs of steps and changes of the gradient
  std::function<void()> checkpoint = {};
  std::function<bool()> stop = {};  ///< asked between iterations; true ends the search
};

/// Minimises f(x) + sum_i l1_i |x_i| from `point`, which must be in the domain. Leaves the best
/// point there and returns the lowest value. Without an l1 norm it is L-BFGS with backtracking.
///
/// The method is OWL-QN. The l1 norm is linear within an orthant, so the curvature of f alone
/// determines the step. The step stays in the orthant of the pseudo-gradient, and a coordinate that
/// would leave it stops at zero. Complexity of an iteration: one call of f (rarely more) and
/// O(memory |x|).
///
/// Source: Andrew, Gao, "Scalable training of L1-regularized log-linear models", ICML 2007.
double minimise(const SmoothFunction& function, const Vector& l1, Vector& point,
                const QuasiNewtonOptions& options = {});

}  // namespace nsimplex::causal

#pragma once

#include <functional>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Value at a point and, into its second argument, the gradient there; +infinity (and any
/// gradient) outside the domain.
using SmoothFunction = std::function<double(const Vector& point, Vector& gradient)>;

struct QuasiNewtonOptions {
  int64_t iterations = 1000;  ///< at most
  double tolerance = 1e-7;    ///< relative decrease over ten iterations that ends it
  int64_t memory = 10;        ///< pairs of steps and changes of the gradient kept
  std::function<void()> checkpoint = {};
};

/// Minimises f(x) + sum_i l1_i |x_i| from `point`, which must be in the domain, and leaves the best
/// point there; returns the least value. Without any l1 it is L-BFGS with backtracking.
///
/// OWL-QN: within an orthant the l1 norm is linear, so the curvature of f alone makes the step; the
/// step keeps to the orthant that the pseudo-gradient points into, and a coordinate that would
/// leave it stops at zero. Complexity of an iteration: one call of f (rarely more) and O(memory
/// |x|).
///
/// Source: Andrew, Gao, "Scalable training of L1-regularized log-linear models", ICML 2007.
double minimise(const SmoothFunction& function, const Vector& l1, Vector& point,
                const QuasiNewtonOptions& options = {});

}  // namespace nsimplex::causal

// Declares the test of noises that depend on each other.

#pragma once

#include <ATen/core/Tensor.h>

namespace nsimplex::causal {

struct Dependence {
  at::Tensor pairs;  ///< int64 [k, 2]: columns whose noises depend on each other, the surest first
  at::Tensor p_values;  ///< float64 [k]
  int64_t tests;        ///< pairs that were tested
  double total;         ///< -2 log p summed over all pairs: how far the noises are from independent
};

/// The tests that causal_limits() describes, of noises [n, M] of a graph with these edges, bool [M,
/// M]. O(n M^2).
Dependence dependent_noises(const at::Tensor& residuals, const at::Tensor& edges, double level);

}  // namespace nsimplex::causal

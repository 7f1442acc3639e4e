// Declares the tables that compute the determinant form as a matrix product.

#pragma once

#include <vector>

#include "kernels/common/attention_problem.h"

// The determinant form as a matrix product. For vectors of N + 1 components,
//   det[q, k1, .., kN] = sum_a U_a kN_a
// where U is the Hodge dual of q ^ k1 ^ .. ^ k(N-1): the cross product when N = 2. The wedge of p +
// 1 vectors has one component for every set of p + 1 of the N + 1 coordinates, and
//   (w ^ k)_S = sum over a in S of (-1)^{b in S: b > a} w_(S without a) k_a.
// Chunks are independent of each other, so components are whole planes of channels.

namespace nsimplex::kernels::dense {

/// to[target] += sign * from[source] * key[component], elementwise on planes.
struct WedgeTerm {
  int target, source, component;
  float sign;
};

/// Adds one more vector to the wedge: terms ordered by target, the same number for each.
struct WedgeStep {
  int targets = 0;
  std::vector<WedgeTerm> terms;

  int terms_each() const { return static_cast<int>(terms.size()) / targets; }
};

/// The steps of one order. Step p takes the key at leading position p. The last one ends in U
/// itself, with planes in coordinate order and their signs.
struct WedgeTable {
  std::vector<WedgeStep> steps;  ///< N - 1
};

/// The table of `order`, built by the first call.
const WedgeTable& wedge_table(int order);

}  // namespace nsimplex::kernels::dense

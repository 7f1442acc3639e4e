// Declares tests of the edges of a graph and of the independences that it implies.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "causal/matrix.h"
#include "causal/structure/lasso.h"

namespace nsimplex::causal {

/// The test of an edge first -> second, or of two columns without an edge of which `first` is
/// earlier: the partial correlation, given the other causes of `second`.
struct TestedPair {
  int64_t first, second;
  std::vector<int64_t> given;
  double correlation, p_value;
};

/// The tests of an acyclic graph, in its causal order, and its linear Gaussian model.
struct TestedGraph {
  std::vector<TestedPair> edges, independences;
  double bic;  ///< n log of the residual variances, and log n per edge
};

/// Throws InputError "table: .." if there are too few rows. Complexity: O(M^2 p^3) for p causes.
TestedGraph tested_graph(const Covariance& covariance, const Matrix& graph);

/// The p-values after Holm's correction for their number.
std::vector<double> holm_adjusted(std::span<const TestedPair> tests);

/// The graph whose column k has the place of column `names[k]`.
Matrix renamed(const Matrix& graph, std::span<const int64_t> names);

}  // namespace nsimplex::causal

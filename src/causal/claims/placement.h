#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// How an embedding shows a graph, as Fig. 3 of Xu et al., arXiv 2509.16629, says that it does.
struct Placement {
  double edge_area;  ///< chance that a pair with an edge is nearer than one without; ties a half
  double generality_correlation;  ///< Spearman's, of radius and - number of descendants
};

/// tangents [M, d], graph [M, M], entries other than 0 being edges. NaN where a figure has no
/// meaning: no edges or all, equal numbers of descendants. O(M^2 (d + log M) + M^2 edges / 64).
Placement placement_of(const Matrix& tangents, TableView graph);

}  // namespace nsimplex::causal

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/graph.h>
#include <nsimplex/version.h>

namespace nsimplex {

/// Discrete Ricci curvatures of every row of a batch of pairs, float64 [m], NaN for a loop. Edges
/// {u, v} have T triangles. Negative edges are bottlenecks.
struct EdgeCurvatures {
  at::Tensor plain;      ///< 4 - deg u - deg v (Forman)
  at::Tensor augmented;  ///< 4 - deg u - deg v + 3 T (Forman with triangles as faces)
  at::Tensor balanced;   ///< with squares too; 0 if an end has degree 1
};

/// The curvatures of every edge of a graph, an attention graph or a line_graph(), whose batch has
/// order 2. Directed pairs count as edges between their nodes; the neighbours are those of
/// adjacency(). With S the neighbours of u and of v on a square through {u, v} without a diagonal,
/// and gamma the largest number of such squares that one of them closes:
///
///     balanced = 2 / deg u + 2 / deg v - 2 + 2 T / max deg + T / min deg + S / (gamma max deg)
///
/// Complexity: O(m d^2) for degrees of d, on the CPU. Errors: c10::ValueError for tuples of another
/// length than 2. Sources: Forman, "Bochner's method for cell complexes and combinatorial Ricci
/// curvature"; for balanced, Topping et al., "Understanding over-squashing and bottlenecks on
/// graphs via curvature", definition 1; "How Smoothing is N-simplicial Attention?", appendix F.2.
NSIMPLEX_API EdgeCurvatures edge_curvatures(const TupleBatch& batch);

}  // namespace nsimplex

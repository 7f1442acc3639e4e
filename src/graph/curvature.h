// Declares discrete Ricci curvatures of the edges of a graph.

#pragma once

#include <optional>

#include "graph/adjacency.h"
#include "support/names.h"

namespace nsimplex::graph {

/// Discrete Ricci curvatures of an edge {u, v} with T triangles on it.
enum class Curvature {
  plain,      ///< 4 - deg u - deg v (Forman)
  augmented,  ///< 4 - deg u - deg v + 3 T (Forman with triangles as faces)
  balanced    ///< with squares too; 0 if an end has degree 1
};
inline constexpr Curvature kCurvatures[] = {Curvature::plain, Curvature::augmented,
                                            Curvature::balanced};

/// The curvature of every edge of one simple graph. `edges` is [m, 2], undirected, without loops
/// and repetitions; `graph` has its neighbours. O(m D^2) at most, where D is the largest degree.
/// `balanced` uses the neighbours of neighbours, the others only neighbours.
///
/// Source of `balanced`: Topping et al., "Understanding over-squashing and bottlenecks on graphs
/// via curvature", definition 1.
std::vector<double> edge_curvatures(const Rows& edges, const Adjacency& graph, Curvature kind);

/// Mean and minimum over the edges of a graph.
struct CurvatureSummary {
  double mean = 0, minimum = 0;
};

/// A graph and its line graph, for each of kCurvatures; absent if it has no edges.
struct CurvatureComparison {
  std::optional<CurvatureSummary> graph[3], line_graph[3];
  int64_t nodes = 0, edges = 0, line_edges = 0;
};

/// Compares one simple graph, given as for edge_curvatures(). Its line graph has one node per edge
/// and one edge per pair of adjacent edges: O(sum of squared degrees) of them.
CurvatureComparison compare_with_line_graph(const Rows& edges, int64_t nodes);

}  // namespace nsimplex::graph

namespace nsimplex {

template <>
inline constexpr Names<graph::Curvature, 3> kNames<graph::Curvature>{
    {{"plain", graph::Curvature::plain},
     {"augmented", graph::Curvature::augmented},
     {"balanced", graph::Curvature::balanced}}};

}  // namespace nsimplex

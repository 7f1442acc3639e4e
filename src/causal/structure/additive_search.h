#pragma once

#include <functional>
#include <vector>

#include "causal/structure/additive_regression.h"
#include "causal/structure/constraints.h"

namespace nsimplex::causal {

/// Expected false edges in a table of independent columns, at the level of the tests below.
constexpr double kFalseEdges = 0.05;

/// Parents of every column, ascending.
using ParentLists = std::vector<std::vector<int64_t>>;

/// The graph of an additive model whose noises have variances of their own: every column is a sum of
/// one smooth function for each of its parents, and noise.
///
/// From the required edges the graph grows by the edge that raises the likelihood most beyond its
/// price, among those that close no cycle; the price is what an F-test of the edge's coefficients at
/// edge_level() asks for. Then every column loses its least significant parent while an F-test at
/// that level does not miss it. With more than 50 columns a column chooses among the 30 that by
/// themselves explain it best. `checkpoint` is called between edges.
///
/// Complexity: O(M^2) regressions, and O(M) for every edge.
///
/// Source: Buehlmann, Peters, Ernest, "CAM: causal additive models, high-dimensional order search
/// and penalized regression", Annals of Statistics 2014, with one search under the test's price in
/// place of a full order that is pruned.
ParentLists additive_graph(AdditiveRegression& regression, const AllowedEdges& edges,
                           int64_t observations, const std::function<void()>& checkpoint);

}  // namespace nsimplex::causal

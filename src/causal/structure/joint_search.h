#pragma once

#include <functional>

#include "causal/structure/additive_search.h"
#include "causal/structure/parent_search.h"
#include "causal/structure/precedence.h"
#include "causal/structure/random_feature_regression.h"

namespace nsimplex::causal {

/// The graph of a model in which every column is any smooth function of its parents together, plus
/// noise of one variance: the next column of the order is the one of which those placed leave least
/// on rows held out. Of its predecessors, the 20 to which it answers most strongly are candidates;
/// those go, the weakest first, without which the held-out squared errors are not larger by a paired
/// test at edge_level().
///
/// Complexity: M + 20 M answers of the regression.
ParentLists joint_equal_graph(const RandomFeatureRegression& regression, const AllowedEdges& edges,
                              const Precedence& precedence,
                              const std::function<void()>& checkpoint);

/// A held-out variance of a column given its causes, which ascend.
using Residual = std::function<double(int64_t column, const std::vector<int64_t>& causes)>;

/// Hill climbing from a given graph: the deletion, reversal or addition of an edge that lowers the
/// sum of all columns' costs most, while one does. Only the 10 columns that explain a column best by
/// themselves, which leave the least of `alone`, are added to its parents.
///
/// Complexity: O(M) residuals, and a few dozen for every move.
ParentLists climb(const Residual& residual, const AllowedEdges& edges, const GaussianCost& cost,
                  ParentLists start, const Matrix& alone);

}  // namespace nsimplex::causal

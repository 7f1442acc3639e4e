#pragma once

#include "causal/embedding/neighbours.h"
#include "causal/embedding/points.h"
#include "causal/task_loop.h"

namespace nsimplex::causal {

/// How well distances answer which nodes are a node's ancestors (Nickel and Kiela, arXiv
/// 1705.08039, section 4.1).
struct Ranking {
  double mean_rank = 0;       ///< over all pairs of a node and an ancestor; 1 is perfect
  double mean_precision = 0;  ///< mean over nodes of their average precision
  int64_t pairs = 0;
};

/// For every edge a -> n of `ancestry`, the rank of a among a and all nodes that are no ancestors
/// of n (n itself left out), by their distance from n, ties counted against a. Time O(nodes^2
/// dimension), with no edges NaN.
Ranking rank_ancestors(const Points& points, const SparseGraph& ancestry, const TaskLoop& loop);

}  // namespace nsimplex::causal

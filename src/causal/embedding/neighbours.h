// Declares which nodes attract each other, closures, PageRank and ancestor ranks.

#pragma once

#include <nsimplex/causal_options.h>
#include <Eigen/SparseCore>

#include <cstdint>
#include <span>
#include <vector>

#include "causal/embedding/points.h"
#include "causal/matrix.h"
#include "causal/task_loop.h"

namespace nsimplex::causal {

/// A weighted graph; entry (i, j) belongs to i -> j.
using SparseGraph = Eigen::SparseMatrix<double, Eigen::RowMajor, int64_t>;

/// Which pairs of nodes attract each other, and how strongly.
struct AttractionOptions {
  int64_t hops = 2;
  AttractionWeight weight = AttractionWeight::paths;
  double decay = 0.5;
  AttractionSide side = AttractionSide::both;
};

/// The pairs (m, n) of nodes that a directed path of at most `hops` edges connects, in either
/// direction: sorted lists of n, one per m. A pair is in the lists of both its nodes.
class Attraction {
 public:
  Attraction(const SparseGraph& graph, const AttractionOptions& options);

  int64_t nodes() const { return std::ssize(begin_) - 1; }
  int64_t pairs() const { return std::ssize(pairs_); }
  int64_t first(int64_t node) const { return begin_[node]; }
  int64_t last(int64_t node) const { return begin_[node + 1]; }

  struct Pair {
    int64_t other;               ///< n
    double weight, back_weight;  ///< w_mn and w_nm
    bool attracts, back;         ///< whether n is in N+(m), and m in N+(n)
  };
  const Pair& operator[](int64_t pair) const { return pairs_[pair]; }
  std::span<const Pair> of(int64_t node) const {
    return std::span(pairs_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

  /// The size of N-(m): all nodes but m and N+(m).
  int64_t negatives(int64_t node) const;

  /// W_m, the sum of w_mn over N+(m), of every node [nodes].
  Eigen::ArrayXd strengths() const;

 private:
  std::vector<int64_t> begin_;
  std::vector<Pair> pairs_;
};

/// Adds an edge of weight 1 from every node to all nodes that it has paths to, except itself; O(M
/// edges).
SparseGraph transitive_closure(const SparseGraph& graph);

/// Whether every two edges i -> j -> k have their i -> k, that is, the graph is its own transitive
/// closure.
bool is_closure(const SparseGraph& graph);

/// Whether the graph is a transitive closure with at least two edges i -> j -> k. Without such
/// edges every graph is its own closure, for example the causes of one outcome, and not a
/// hierarchy.
bool is_hierarchy(const SparseGraph& graph);

/// pi of Eq. 18: the stationary distribution of a walk that goes from effects to causes, each in
/// proportion to its share of the effect's |A|, and with probability `restart` anywhere. Every
/// acyclic graph has nodes without causes, which the equation does not cover; see DanglingRule.
/// Sums to 1. Power iteration stops when it moves by less than 1e-12.
Eigen::ArrayXd causal_pagerank(const SparseGraph& graph, double restart, DanglingRule rule);

/// How well distances identify a node's ancestors (Nickel and Kiela, arXiv 1705.08039, section
/// 4.1).
struct Ranking {
  double mean_rank = 0;       ///< over all pairs of a node and an ancestor; 1 is perfect
  double mean_precision = 0;  ///< mean over nodes of their average precision
  int64_t pairs = 0;
};

/// For every edge a -> n of `ancestry`, the rank of a by its distance from n, among a and all nodes
/// that are not ancestors of n (without n itself). Ties count against a. Time O(nodes^2 dimension);
/// NaN without edges.
Ranking rank_ancestors(const Points& points, const SparseGraph& ancestry, const TaskLoop& loop);

}  // namespace nsimplex::causal

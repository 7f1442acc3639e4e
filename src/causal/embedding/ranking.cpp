#include "causal/embedding/ranking.h"

#include <algorithm>

namespace nsimplex::causal {
namespace {

constexpr double kTie = 1e-12;  // relative: what rounding can say of sinh(d / 2)^2

struct NodeRanks {
  double rank_sum = 0, precision = 0;
  int64_t ancestors = 0;
};

NodeRanks rank(const Points& points, int64_t node, const SparseGraph& ancestors_of) {
  Eigen::ArrayXd squares(points.padded());
  kernels::hyperbolic_squares(points.one(node), points.all(), squares.data());
  std::vector<char> competes(static_cast<size_t>(points.count()), 1);
  competes[node] = 0;
  std::vector<double> ancestors, others;
  for (SparseGraph::InnerIterator entry(ancestors_of, node); entry; ++entry) {
    if (entry.value() == 0 || entry.col() == node) continue;
    competes[entry.col()] = 0;
    ancestors.push_back(squares[entry.col()]);
  }
  for (int64_t other = 0; other < points.count(); ++other) {
    if (competes[other]) others.push_back(squares[other]);
  }
  std::sort(ancestors.begin(), ancestors.end());
  std::sort(others.begin(), others.end());
  NodeRanks ranks{.ancestors = std::ssize(ancestors)};
  for (int64_t found = 1; found <= ranks.ancestors; ++found) {
    const double tied = ancestors[found - 1] * (1 + kTie);
    const auto beyond = std::upper_bound(others.begin(), others.end(), tied);
    const auto before = static_cast<double>(beyond - others.begin());
    ranks.rank_sum += 1 + before;
    ranks.precision += static_cast<double>(found) / (static_cast<double>(found) + before);
  }
  return ranks;
}

}  // namespace

Ranking rank_ancestors(const Points& points, const SparseGraph& ancestry, const TaskLoop& loop) {
  const SparseGraph ancestors_of = ancestry.transpose();
  std::vector<NodeRanks> ranks(static_cast<size_t>(points.count()));
  loop(points.count(), [&](int64_t node) {
    if (ancestors_of.innerVector(node).nonZeros() > 0)
      ranks[node] = rank(points, node, ancestors_of);
  });
  Ranking ranking;
  int64_t nodes = 0;
  for (const NodeRanks& each : ranks) {
    if (each.ancestors == 0) continue;
    ++nodes;
    ranking.pairs += each.ancestors;
    ranking.mean_rank += each.rank_sum;
    ranking.mean_precision += each.precision / static_cast<double>(each.ancestors);
  }
  ranking.mean_rank /= static_cast<double>(ranking.pairs);
  ranking.mean_precision /= static_cast<double>(nodes);
  return ranking;
}

}  // namespace nsimplex::causal

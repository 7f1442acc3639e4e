// Finds which nodes attract each other, and computes closures, PageRank and ancestor ranks.

#include "causal/embedding/neighbours.h"

#include <algorithm>

namespace nsimplex::causal {
namespace {

// P of the options; it has an entry for every path.
SparseGraph path_strengths(const SparseGraph& magnitudes, const AttractionOptions& options) {
  SparseGraph sum = magnitudes, paths = magnitudes;
  for (int64_t hop = 2; hop <= options.hops && paths.nonZeros() > 0; ++hop) {
    paths = SparseGraph(paths * magnitudes) * options.decay;
    sum += paths;
  }
  return sum;
}

}  // namespace

Attraction::Attraction(const SparseGraph& graph, const AttractionOptions& options) {
  const bool both = options.side == AttractionSide::both;
  const SparseGraph magnitudes = graph.cwiseAbs();
  const SparseGraph forth = path_strengths(magnitudes, options), back = forth.transpose();
  const SparseGraph either = forth + back;
  // The weight of n for m.
  const auto weight = [&](int64_t m, int64_t n) {
    if (options.weight == AttractionWeight::direct)
      return magnitudes.coeff(both ? m : n, both ? n : m);
    return both ? either.coeff(m, n) : back.coeff(m, n);
  };
  begin_.push_back(0);
  for (int64_t node = 0; node < either.rows(); ++node) {
    for (SparseGraph::InnerIterator entry(either, node); entry; ++entry) {
      const int64_t other = entry.col();
      if (other == node || entry.value() == 0) continue;
      pairs_.push_back({other, weight(node, other), weight(other, node),
                        both || back.coeff(node, other) > 0, both || back.coeff(other, node) > 0});
    }
    begin_.push_back(pairs());
  }
}

int64_t Attraction::negatives(int64_t node) const {
  const auto attracts = [](const Pair& pair) { return pair.attracts; };
  return nodes() - 1 - std::ranges::count_if(of(node), attracts);
}

Eigen::ArrayXd Attraction::strengths() const {
  Eigen::ArrayXd sums = Eigen::ArrayXd::Zero(nodes());
  for (int64_t node = 0; node < nodes(); ++node) {
    for (const Pair& pair : of(node)) sums[node] += pair.attracts ? pair.weight : 0.0;
  }
  return sums;
}

SparseGraph transitive_closure(const SparseGraph& graph) {
  std::vector<Eigen::Triplet<double, int64_t>> reached;
  std::vector<int64_t> seen_from(static_cast<size_t>(graph.rows()), -1), waiting;
  for (int64_t start = 0; start < graph.rows(); ++start) {
    seen_from[start] = start;
    waiting.push_back(start);
    while (!waiting.empty()) {
      const int64_t node = waiting.back();
      waiting.pop_back();
      for (SparseGraph::InnerIterator edge(graph, node); edge; ++edge) {
        if (edge.value() == 0 || seen_from[edge.col()] == start) continue;
        seen_from[edge.col()] = start;
        waiting.push_back(edge.col());
        reached.emplace_back(start, edge.col(), 1.0);
      }
    }
  }
  SparseGraph closure(graph.rows(), graph.rows());
  closure.setFromTriplets(reached.begin(), reached.end());
  return closure;
}

namespace {

// The pairs connected by one edge, loops aside, or by two consecutive edges.
struct Reached {
  SparseGraph once, twice;
};

Reached reached(const SparseGraph& graph) {
  SparseGraph edges = graph.cwiseAbs();
  edges.prune([](int64_t i, int64_t j, double value) { return i != j && value != 0; });
  std::fill_n(edges.valuePtr(), edges.nonZeros(), 1.0);
  return {edges, edges * edges};
}

bool is_closure(const Reached& reached) {
  return SparseGraph(reached.once + reached.twice).nonZeros() == reached.once.nonZeros();
}

}  // namespace

bool is_closure(const SparseGraph& graph) { return is_closure(reached(graph)); }

bool is_hierarchy(const SparseGraph& graph) {
  const Reached pairs = reached(graph);
  return pairs.twice.nonZeros() > 0 && is_closure(pairs);
}

Eigen::ArrayXd causal_pagerank(const SparseGraph& graph, double restart, DanglingRule rule) {
  constexpr int kMostSteps = 10'000;
  constexpr double kClose = 1e-12;
  const SparseGraph magnitudes = graph.cwiseAbs();
  const auto nodes = static_cast<double>(graph.rows());
  const Vector in_strength = magnitudes.transpose() * Vector::Ones(graph.rows());
  const Eigen::ArrayXd caused = (in_strength.array() > 0).cast<double>();
  const Eigen::ArrayXd share = caused / (in_strength.array() + (1 - caused));

  Eigen::ArrayXd rank = Eigen::ArrayXd::Constant(graph.rows(), 1 / nodes);
  for (int step = 0; step < kMostSteps; ++step) {
    Eigen::ArrayXd next = (magnitudes * (rank * share).matrix()).array();
    if (rule == DanglingRule::uniform) next += (rank * (1 - caused)).sum() / nodes;
    next = (1 - restart) * next + restart / nodes;
    next /= next.sum();
    const double change = (next - rank).abs().sum();
    rank = std::move(next);
    if (change < kClose) break;
  }
  return rank;
}

namespace {

constexpr double kTie = 1e-12;  // relative rounding error of sinh(d / 2)^2

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

// Embeds a graph in hyperbolic space, after its weights are balanced.

#include "causal/embedding/embed.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "causal/embedding/embedding_loss.h"
#include "causal/embedding/neighbours.h"
#include "causal/embedding/points.h"
#include "support/error.h"
#include "support/random.h"
#include "support/require.h"

namespace nsimplex::causal {
namespace {

constexpr double kLogGrid = 1 << 20;  // log b is rounded to one over this
// the residual, relative to the first one, at which the iteration stops
constexpr double kBalanced = 1e-13;
constexpr int64_t kMostHops = 1'000'000;  // each multiplies two matrices
constexpr double kMostLog = 6.9078;       // log 1000

struct Edge {
  int64_t cause, effect;
};

// The change of log b when the unknowns [x; mu] change: x_j - x_i - mu, edge by edge.
Vector changes(const std::vector<Edge>& edges, const Vector& unknowns) {
  const double mean = unknowns[unknowns.size() - 1];
  Vector all(std::ssize(edges));
  for (int64_t at = 0; at < all.size(); ++at) {
    all[at] = unknowns[edges[at].effect] - unknowns[edges[at].cause] - mean;
  }
  return all;
}

// The transpose of changes().
Vector gathered(const std::vector<Edge>& edges, const Vector& values, int64_t unknowns) {
  Vector sums = Vector::Zero(unknowns);
  for (int64_t at = 0; at < values.size(); ++at) {
    sums[edges[at].effect] += values[at];
    sums[edges[at].cause] -= values[at];
  }
  sums[unknowns - 1] = -values.sum();
  return sums;
}

// The residual of `logs` after the best change is added. Conjugate gradients of the normal
// equations. Some directions of their unknowns change nothing; started at zero, the iteration never
// enters them.
Vector residual(const std::vector<Edge>& edges, Vector logs, int64_t nodes) {
  const int64_t unknowns = nodes + 1;
  Vector slope = -gathered(edges, logs, unknowns), direction = slope;
  double size = slope.squaredNorm();
  const double enough = kBalanced * kBalanced * size;
  for (int64_t step = 0; step < 2 * unknowns && size > enough; ++step) {
    const Vector change = changes(edges, direction);
    const double length = size / change.squaredNorm();
    if (!std::isfinite(length)) break;
    logs += length * change;
    slope = -gathered(edges, logs, unknowns);
    const double before = size;
    size = slope.squaredNorm();
    direction = slope + size / before * direction;
  }
  return logs;
}

}  // namespace

SparseGraph balanced(const SparseGraph& graph) {
  SparseGraph magnitudes = graph.cwiseAbs();
  magnitudes.prune([](int64_t, int64_t, double value) { return value > 0; });
  magnitudes.makeCompressed();
  std::vector<Edge> edges;
  for (int64_t node = 0; node < magnitudes.rows(); ++node) {
    for (SparseGraph::InnerIterator entry(magnitudes, node); entry; ++entry) {
      edges.push_back({node, entry.col()});
    }
  }
  if (edges.empty()) return magnitudes;
  Vector logs(std::ssize(edges));
  for (int64_t at = 0; at < logs.size(); ++at) logs[at] = std::log(magnitudes.valuePtr()[at]);
  logs.array() -= logs.mean();  // a part of mu that loses no digits
  logs = residual(edges, logs, graph.rows());
  for (int64_t at = 0; at < logs.size(); ++at) {
    const double rounded = std::round(logs[at] * kLogGrid) / kLogGrid;
    magnitudes.valuePtr()[at] = std::exp(std::clamp(rounded, -kMostLog, kMostLog));
  }
  return magnitudes;
}

namespace {

// The reason for the given rows only.
std::string why_blank(const Matrix& tangents, const std::vector<int64_t>& counted,
                      const char* nodes) {
  int64_t central = 0;
  bool apart = false;
  const Vector first = tangents.row(counted.front());
  for (const int64_t node : counted) {
    const Vector z = tangents.row(node);
    central += z.norm() < kBlankRadius;
    apart = apart || distance(first, z) >= kBlankRadius;
  }
  const auto all = std::to_string(counted.size());
  if (2 * central > std::ssize(counted)) {
    return std::to_string(central).append(" of ").append(all).append(nodes).append(
        " lie within 0.05 of the origin, so their angles carry nothing: a smaller "
        "generality or fewer hops keep them apart");
  }
  if (apart) return "";
  return std::string("all ").append(all).append(nodes).append(
      " lie in one point, so their angles tell none from another");
}

}  // namespace

std::string why_blank(const Matrix& tangents, const SparseGraph& graph) {
  std::vector<char> joined(static_cast<size_t>(graph.rows()), 0);
  for (int64_t node = 0; node < graph.rows(); ++node) {
    for (SparseGraph::InnerIterator edge(graph, node); edge; ++edge) {
      if (edge.value() == 0 || edge.col() == node) continue;
      joined[static_cast<size_t>(node)] = joined[static_cast<size_t>(edge.col())] = 1;
    }
  }
  std::vector<int64_t> counted;
  for (int64_t node = 0; node < graph.rows(); ++node) {
    if (joined[static_cast<size_t>(node)] != 0) counted.push_back(node);
  }
  if (counted.empty())
    return "the graph has no edges, so its points and their angles carry nothing";
  return why_blank(tangents, counted, " nodes with edges");
}

std::string why_blank(const Matrix& tangents) {
  std::vector<int64_t> counted(static_cast<size_t>(tangents.rows()));
  std::iota(counted.begin(), counted.end(), 0);
  return counted.size() < 2 ? "" : why_blank(tangents, counted, " points");
}

namespace {

constexpr double kStart = 1e-3;     // standard deviation of the first coordinates
constexpr double kLastRate = 0.01;  // the last step's learning rate relative to the first
constexpr int64_t kAllNegatives = 2000, kSomeNegatives = 512;

void check(const CausalEmbeddingOptions& options) {
  require_argument(options.dimension >= 2, "dimension", "2 or more", options.dimension);
  require_argument(options.steps >= 0, "steps", "0 or more", options.steps);
  const int64_t hops = options.hops.value_or(1);
  require_argument(hops >= 1 && hops <= kMostHops, "hops", "1 to 1,000,000", hops);
  require_argument(options.decay > 0 && options.decay <= 1, "decay", "a number in (0, 1]",
                   options.decay);
  require_argument(options.negatives.value_or(0) >= 0, "negatives", "0 or more",
                   options.negatives.value_or(0));
  require_argument(options.generality >= 0 && std::isfinite(options.generality), "generality",
                   "0 or more", options.generality);
  require_argument(options.restart > 0 && options.restart < 1, "restart", "a number in (0, 1)",
                   options.restart);
  const double rate = options.learning_rate.value_or(1);
  require_argument(rate > 0 && std::isfinite(rate), "learning_rate", "a positive number", rate);
}

AttractionOptions attraction_of(const SparseGraph& graph, const CausalEmbeddingOptions& options) {
  const bool closed = (!options.hops || !options.side) && is_hierarchy(graph);
  return {options.hops.value_or(closed ? 1 : 2), options.weight, options.decay,
          options.side.value_or(closed ? AttractionSide::causes : AttractionSide::both)};
}

Matrix first_points(int64_t nodes, int64_t dimension, RandomStream& draws) {
  Matrix points(nodes, dimension);
  for (int64_t at = 0; at < points.size(); ++at) {
    points.data()[at] = kStart * draws.normal();
  }
  return points;
}

// Draws `count` of the numbers in `all`, sorted: the first ones of an incomplete shuffle.
std::vector<int64_t> draw(std::vector<int64_t>& all, int64_t count, RandomStream& draws) {
  for (int64_t at = 0; at < count; ++at) {
    std::swap(all[at], all[at + draws.below(std::ssize(all) - at)]);
  }
  std::vector<int64_t> drawn(all.begin(), all.begin() + count);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace

SparseGraph weights_of(const SparseGraph& graph, const CausalEmbeddingOptions& options) {
  return options.balanced ? balanced(graph) : graph;
}

Eigen::ArrayXd pulls(const Eigen::ArrayXd& attractions, const Eigen::ArrayXd& generality,
                     const CausalEmbeddingOptions& options) {
  if (!options.relative) return options.generality * generality;
  const auto attracted = static_cast<double>(std::max<int64_t>((attractions > 0).count(), 1));
  const double mean = attractions.sum() / attracted;
  const auto nodes = static_cast<double>(generality.size());
  return options.generality * nodes * generality * attractions.sqrt() * std::sqrt(mean);
}

Embedding embed(const SparseGraph& given, const CausalEmbeddingOptions& options,
                const TaskLoop& loop) {
  check(options);
  const SparseGraph graph = weights_of(given, options);
  const int64_t nodes = graph.rows();
  const auto count = static_cast<double>(nodes);
  Embedding result;
  result.generality = causal_pagerank(graph, options.restart, options.dangling);
  result.attraction = attraction_of(graph, options);
  const Attraction attraction(graph, result.attraction);
  for (int64_t node = 0; node < nodes; ++node) {
    result.without_negatives += attraction.negatives(node) == 0;
  }
  const Eigen::ArrayXd attractions = attraction.strengths();
  if (!attractions.isFinite().all()) {
    throw InputError(
        "adjacency: expected weights whose paths are finite numbers, got some too large for these");
  }
  const Eigen::ArrayXd pull = pulls(attractions, result.generality, options);
  const ContrastiveLoss loss(attraction, pull,
                             options.relative ? PullShape::log_cosh : PullShape::distance);

  RandomStream draws(static_cast<uint64_t>(options.seed));
  result.tangents = first_points(nodes, options.dimension, draws);
  std::vector<int64_t> all(static_cast<size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  const int64_t wanted = options.negatives.value_or(nodes <= kAllNegatives ? 0 : kSomeNegatives);
  const int64_t negatives = wanted == 0 ? nodes : std::min(wanted, nodes);
  const auto optimiser = make_optimiser(options.optimiser, nodes, options.dimension);
  const double rate = options.learning_rate.value_or(default_learning_rate(options.optimiser));
  for (int64_t step = 0;; ++step) {
    const std::vector<int64_t> chosen = draw(all, negatives, draws);
    const LossGradient at = loss(Points(result.tangents), chosen, loop);
    result.loss = at.loss / count;
    if (step == options.steps) return result;
    if (options.checkpoint) options.checkpoint(step);
    const double done = static_cast<double>(step) / static_cast<double>(options.steps);
    const double fall = 0.5 + 0.5 * std::cos(std::numbers::pi * done);
    optimiser->step(result.tangents, at.gradient, rate * (kLastRate + (1 - kLastRate) * fall));
  }
}

}  // namespace nsimplex::causal

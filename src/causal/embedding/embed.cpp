#include "causal/embedding/embed.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "causal/embedding/balance.h"
#include "causal/embedding/loss.h"
#include "causal/embedding/optimiser.h"
#include "causal/embedding/pagerank.h"
#include "causal/embedding/points.h"
#include "support/error.h"
#include "support/random.h"

namespace nsimplex::causal {
namespace {

constexpr double kStart = 1e-3;     // standard deviation of the first coordinates
constexpr double kLastRate = 0.01;  // of the learning rate, at the last step
constexpr int64_t kAllNegatives = 2000, kSomeNegatives = 512;

template <class Number>
void require(bool holds, const char* argument, const char* expected, Number came) {
  if (holds) return;
  throw InputError(std::string(argument)
                       .append(": expected ")
                       .append(expected)
                       .append(", got ")
                       .append(std::to_string(came)));
}

void check(const CausalEmbeddingOptions& options) {
  require(options.dimension >= 2, "dimension", "2 or more", options.dimension);
  require(options.steps >= 0, "steps", "0 or more", options.steps);
  require(options.hops.value_or(1) >= 1, "hops", "1 or more", options.hops.value_or(1));
  require(options.decay > 0 && options.decay <= 1, "decay", "a number in (0, 1]", options.decay);
  require(options.negatives.value_or(0) >= 0, "negatives", "0 or more",
          options.negatives.value_or(0));
  require(options.generality >= 0 && std::isfinite(options.generality), "generality", "0 or more",
          options.generality);
  require(options.restart > 0 && options.restart < 1, "restart", "a number in (0, 1)",
          options.restart);
  const double rate = options.learning_rate.value_or(1);
  require(rate > 0 && std::isfinite(rate), "learning_rate", "a positive number", rate);
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

// `count` of the numbers in `all`, sorted: the first ones of a shuffle that stops there.
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

#include "causal/synthetic/model.h"

#include <optional>
#include <string>

#include "causal/graphs/acyclic.h"
#include "causal/synthetic/random_graph.h"
#include "support/error.h"

namespace nsimplex::causal {
namespace {

// Streams of one seed that have nothing to do with each other.
enum class Purpose : uint64_t { graph, weights, mechanisms, noise };

uint64_t seed_for(uint64_t seed, Purpose purpose) {
  return random_bits(seed, static_cast<uint64_t>(purpose));
}

void require_at_least(const char* option, int64_t least, int64_t value) {
  if (value >= least) return;
  throw InputError(std::string(option)
                       .append(": expected at least ")
                       .append(std::to_string(least))
                       .append(", got ")
                       .append(std::to_string(value)));
}

Matrix random_graph(const CausalSimulationOptions& options) {
  require_at_least("nodes", 1, options.nodes);
  require_at_least("degree", options.graph == CausalGraph::scale_free ? 1 : 0, options.degree);
  const std::vector<int64_t> edges =
      random_dag(options.graph, options.nodes, options.degree,
                 seed_for(static_cast<uint64_t>(options.seed), Purpose::graph));
  Matrix graph = Matrix::Zero(options.nodes, options.nodes);
  for (size_t end = 0; end < edges.size(); end += 2) graph(edges[end], edges[end + 1]) = 1.0;
  return graph;
}

}  // namespace

StructuralModel::StructuralModel(const CausalSimulationOptions& options)
    : StructuralModel(random_graph(options), options) {}

StructuralModel::StructuralModel(const Matrix& graph, const CausalSimulationOptions& options)
    : noise_(options.noise),
      seed_(static_cast<uint64_t>(options.seed)),
      weights_(Matrix::Zero(graph.rows(), graph.cols())) {
  if (!(options.weight_low >= 0.0 && options.weight_low <= options.weight_high)) {
    throw InputError(std::string("weights: expected 0 <= low <= high, got ")
                         .append(std::to_string(options.weight_low))
                         .append(" and ")
                         .append(std::to_string(options.weight_high)));
  }
  const std::optional<std::vector<int64_t>> order = causal_order(graph);
  if (!order) throw InputError("graph: expected no cycles, got a graph with one");
  RandomStream weights(seed_for(seed_, Purpose::weights));
  for (Eigen::Index cause = 0; cause < graph.rows(); ++cause) {
    for (Eigen::Index effect = 0; effect < graph.cols(); ++effect) {
      if (graph(cause, effect) == 0.0) continue;
      weights_(cause, effect) = signed_weight(options.weight_low, options.weight_high, weights);
    }
  }
  for (const int64_t effect : *order) {
    RandomStream draws(
        random_bits(seed_for(seed_, Purpose::mechanisms), static_cast<uint64_t>(effect)));
    Equation equation{
        effect, {}, nullptr, options.equal_variances ? 1.0 : 0.5 + 1.5 * draws.unit()};
    for (Eigen::Index cause = 0; cause < graph.rows(); ++cause) {
      if (graph(cause, effect) != 0.0) equation.causes.push_back(cause);
    }
    if (!equation.causes.empty()) {
      equation.mechanism = make_mechanism(options, weights_(equation.causes, effect), draws);
    }
    equations_.push_back(std::move(equation));
  }
}

Matrix StructuralModel::sample(int64_t observations, int64_t sample_seed,
                               std::span<const Intervention> interventions) const {
  require_at_least("observations", 1, observations);
  std::vector<std::optional<double>> set(static_cast<size_t>(features()));
  for (const Intervention& intervention : interventions) {
    const int64_t feature = intervention.feature;
    if (feature < 0 || feature >= features()) {
      throw InputError(std::string("interventions: expected columns of 0 .. ")
                           .append(std::to_string(features() - 1))
                           .append(", got ")
                           .append(std::to_string(feature)));
    }
    std::optional<double>& value = set[static_cast<size_t>(feature)];
    if (value) {
      throw InputError(std::string("interventions: expected one value a column, got two for ")
                           .append(std::to_string(feature)));
    }
    value = intervention.value;
  }
  const uint64_t noise_seed =
      random_bits(seed_for(seed_, Purpose::noise), static_cast<uint64_t>(sample_seed));
  Matrix table(observations, features());
  for (const Equation& equation : equations_) {
    auto column = table.col(equation.effect);
    if (const std::optional<double>& value = set[static_cast<size_t>(equation.effect)]) {
      column.setConstant(*value);
      continue;
    }
    RandomStream draws(random_bits(noise_seed, static_cast<uint64_t>(equation.effect)));
    for (double& entry : column) entry = equation.deviation * draw_noise(noise_, draws);
    if (equation.mechanism) column += (*equation.mechanism)(table(Eigen::all, equation.causes));
  }
  return table;
}

}  // namespace nsimplex::causal

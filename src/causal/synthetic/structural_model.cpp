// Draws random causal graphs and structural equation models, and samples tables from them.

#include "causal/synthetic/structural_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "causal/graph/acyclic.h"
#include "graph/random_graphs.h"
#include "support/error.h"
#include "support/random.h"
#include "support/require.h"
#include "support/size_limits.h"

namespace nsimplex::causal {
namespace {

std::vector<int64_t> permutation(int64_t count, RandomStream& draws) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  for (int64_t left = count; left > 1; --left) {
    std::swap(numbers[static_cast<size_t>(left - 1)],
              numbers[static_cast<size_t>(draws.below(left))]);
  }
  return numbers;
}

// `count` different pairs i < j, drawn from all (Floyd's sampling), ascending.
std::vector<int64_t> random_pairs(int64_t nodes, int64_t count, RandomStream& draws) {
  const int64_t all = nodes * (nodes - 1) / 2;
  std::unordered_set<int64_t> chosen;
  for (int64_t last = all - count; last < all; ++last) {
    const int64_t drawn = draws.below(last + 1);
    chosen.insert(chosen.contains(drawn) ? last : drawn);
  }
  std::vector<int64_t> numbers(chosen.begin(), chosen.end());
  std::sort(numbers.begin(), numbers.end());
  std::vector<int64_t> pairs;
  int64_t j = 1, first = 0;  // pairs (0, j), .., (j - 1, j) have the numbers from `first` on
  for (const int64_t number : numbers) {
    while (number >= first + j) first += j++;
    pairs.insert(pairs.end(), {number - first, j});
  }
  return pairs;
}

}  // namespace

std::vector<int64_t> random_dag(CausalGraph graph, int64_t nodes, int64_t degree, uint64_t seed) {
  RandomStream draws(seed);
  const std::vector<int64_t> rank = permutation(nodes, draws);
  std::vector<int64_t> edges =
      graph == CausalGraph::scale_free
          ? graph::preferential_attachment(nodes, degree, draws.bits())
          : random_pairs(
                nodes, std::min(saturating_product(degree, nodes), nodes * (nodes - 1) / 2), draws);
  for (size_t end = 0; end < edges.size(); end += 2) {
    const auto rank_of = [&](int64_t node) { return rank[static_cast<size_t>(node)]; };
    if (rank_of(edges[end]) > rank_of(edges[end + 1])) std::swap(edges[end], edges[end + 1]);
  }
  return edges;
}

namespace {

constexpr Eigen::Index kHiddenUnits = 100;  // from the published protocol
constexpr Eigen::Index kFeatures =
    256;  // of a Gaussian process: errors of its kernel are 1 / sqrt(256)

class Linear : public Mechanism {
 public:
  explicit Linear(Vector weights) : weights_(std::move(weights)) {}
  Vector operator()(const Matrix& causes) const override { return causes * weights_; }

 private:
  Vector weights_;
};

class Mlp : public Mechanism {
 public:
  Mlp(Eigen::Index causes, double low, double high, RandomStream& draws)
      : hidden_(causes, kHiddenUnits), output_(kHiddenUnits) {
    for (double& weight : hidden_.reshaped<Eigen::RowMajor>()) {
      weight = signed_weight(low, high, draws);
    }
    for (double& weight : output_) weight = signed_weight(low, high, draws);
  }
  Vector operator()(const Matrix& causes) const override {
    const Matrix logits = causes * hidden_;
    return ((-logits.array()).exp() + 1.0).inverse().matrix() * output_;
  }

 private:
  Matrix hidden_;
  Vector output_;
};

// A function drawn from a Gaussian process: a_1 cos(w_1 x + b_1) + .. with normal a and w and
// uniform b (Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007). It
// can be evaluated anywhere, as interventions require; draws at given points cannot.
class AdditiveProcess : public Mechanism {
 public:
  AdditiveProcess(Eigen::Index causes, RandomStream& draws)
      : frequencies_(causes, kFeatures),
        phases_(causes, kFeatures),
        amplitudes_(causes, kFeatures) {
    const double scale = std::sqrt(2.0 / static_cast<double>(kFeatures));
    for (Eigen::Index cause = 0; cause < causes; ++cause) {
      for (Eigen::Index k = 0; k < kFeatures; ++k) {
        frequencies_(cause, k) = draws.normal();
        phases_(cause, k) = 2 * std::numbers::pi * draws.unit();
        amplitudes_(cause, k) = scale * draws.normal();
      }
    }
  }
  Vector operator()(const Matrix& causes) const override {
    Vector sum = Vector::Zero(causes.rows());
    for (Eigen::Index cause = 0; cause < causes.cols(); ++cause) {
      const Matrix angles =
          (causes.col(cause) * frequencies_.row(cause)).rowwise() + phases_.row(cause);
      sum += angles.array().cos().matrix() * amplitudes_.row(cause).transpose();
    }
    return sum;
  }

 private:
  Matrix frequencies_, phases_, amplitudes_;
};

// Numbers per row that a mechanism holds at once.
int64_t width_of(CausalMechanism mechanism) {
  switch (mechanism) {
    case CausalMechanism::mlp:
      return kHiddenUnits;
    case CausalMechanism::additive_gp:
      return kFeatures;
    case CausalMechanism::linear:
      break;
  }
  return 1;
}

}  // namespace

double signed_weight(double low, double high, RandomStream& draws) {
  const double size = low + (high - low) * draws.unit();
  return draws.below(2) == 0 ? -size : size;
}

std::unique_ptr<Mechanism> make_mechanism(const CausalSimulationOptions& options, Vector weights,
                                          RandomStream& draws) {
  switch (options.mechanism) {
    case CausalMechanism::mlp:
      return std::make_unique<Mlp>(weights.size(), options.weight_low, options.weight_high, draws);
    case CausalMechanism::additive_gp:
      return std::make_unique<AdditiveProcess>(weights.size(), draws);
    case CausalMechanism::linear:
      break;
  }
  return std::make_unique<Linear>(std::move(weights));
}

double draw_noise(CausalNoise noise, RandomStream& draws) {
  switch (noise) {
    case CausalNoise::exponential:
      return draws.exponential() - 1.0;
    case CausalNoise::gumbel:  // mean: Euler's constant, variance pi^2 / 6
      return (-std::log(draws.exponential()) - std::numbers::egamma) * std::sqrt(6.0) /
             std::numbers::pi;
    case CausalNoise::gaussian:
      break;
  }
  return draws.normal();
}

namespace {

// Independent random streams of one seed.
enum class Purpose : uint64_t { graph, weights, mechanisms, noise };

uint64_t seed_for(uint64_t seed, Purpose purpose) {
  return random_bits(seed, static_cast<uint64_t>(purpose));
}

Matrix random_graph(const CausalSimulationOptions& options) {
  require_at_least("nodes", 1, options.nodes);
  require_at_least("degree", options.graph == CausalGraph::scale_free ? 1 : 0, options.degree);
  require_room("nodes", {options.nodes, options.nodes});
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
      width_(width_of(options.mechanism)),
      seed_(static_cast<uint64_t>(options.seed)),
      weights_(Matrix::Zero(graph.rows(), graph.cols())) {
  require(options.weight_low >= 0.0 && options.weight_low <= options.weight_high &&
              std::isfinite(options.weight_high),
          "weights: expected finite numbers with 0 <= low <= high, got ", options.weight_low,
          " and ", options.weight_high);
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
  require_room("observations", {observations, std::max(features(), width_)});
  std::vector<std::optional<double>> set(static_cast<size_t>(features()));
  for (const Intervention& intervention : interventions) {
    const int64_t feature = intervention.feature;
    if (feature < 0 || feature >= features()) {
      throw InputError(std::string("interventions: expected columns of 0 .. ")
                           .append(std::to_string(features() - 1))
                           .append(", got ")
                           .append(std::to_string(feature)));
    }
    require(std::isfinite(intervention.value), "interventions: expected finite numbers, got ",
            intervention.value, " for ", feature);
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

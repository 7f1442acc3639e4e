// simulate_causal() and its operator for Python, with options by name and interventions as two
// tensors.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include "causal/option_names.h"
#include "causal/synthetic/structural_model.h"
#include "causal/tensors.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr const char* kSimulateName = "simulate_causal";

CausalSimulation simulate(const StructuralModel& model, const CausalSimulationOptions& options) {
  return {to_tensor(model.sample(options.observations, options.sample_seed, options.interventions)),
          to_tensor(model.weights())};
}

}  // namespace

CausalSimulation simulate_causal(const CausalSimulationOptions& options) {
  return as_function(kSimulateName, [&] { return simulate(StructuralModel(options), options); });
}

CausalSimulation simulate_causal(const Tensor& graph, const CausalSimulationOptions& options) {
  const Tensor checked = checked_graph("[simulate_causal] graph", graph);
  return as_function(kSimulateName, [&] {
    return simulate(StructuralModel(view_matrix(checked), options), options);
  });
}

namespace {

std::tuple<Tensor, Tensor> simulate_by_name(const std::optional<Tensor>& dag,
                                            std::string_view graph, int64_t nodes, int64_t degree,
                                            int64_t observations, std::string_view mechanism,
                                            std::string_view noise, bool equal_variances,
                                            double weight_low, double weight_high, int64_t seed,
                                            int64_t sample_seed, at::IntArrayRef features,
                                            at::ArrayRef<double> values) {
  TORCH_CHECK_VALUE(features.size() == values.size(),
                    "[simulate_causal] interventions: expected a ", "value a column, got ",
                    features.size(), " and ", values.size());
  CausalSimulationOptions options;
  as_function(kSimulateName, [&] {
    options.graph = parse_name<CausalGraph>("graph", graph);
    options.mechanism = parse_name<CausalMechanism>("mechanism", mechanism);
    options.noise = parse_name<CausalNoise>("noise", noise);
  });
  options.nodes = nodes;
  options.degree = degree;
  options.observations = observations;
  options.equal_variances = equal_variances;
  options.weight_low = weight_low;
  options.weight_high = weight_high;
  options.seed = seed;
  options.sample_seed = sample_seed;
  for (size_t each = 0; each < features.size(); ++each) {
    options.interventions.push_back({features[each], values[each]});
  }
  CausalSimulation result = dag ? simulate_causal(*dag, options) : simulate_causal(options);
  return {std::move(result.table), std::move(result.weights)};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_simulate(Tensor? dag, str graph, int nodes, int degree, int observations, str "
      "mechanism, str noise, bool equal_variances, float weight_low, float weight_high, int seed, "
      "int sample_seed, int[] features, float[] values) -> (Tensor, Tensor)",
      TORCH_FN(simulate_by_name));
}

}  // namespace
}  // namespace nsimplex

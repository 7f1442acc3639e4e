#include "training/placement_study.h"

#include <ATen/ATen.h>

#include "causal/claims/placement.h"
#include "causal/tensors.h"

namespace nsimplex::training {
namespace {

PlacedGraph place(const at::Tensor& graph, const at::Tensor& truth,
                  const CausalEmbeddingOptions& options, bool learned) {
  CausalEmbedding made = causal_embed(graph, options);
  const causal::Matrix tangents = causal::view_matrix(made.tangents);
  const causal::Placement by_truth = causal::placement_of(tangents, causal::view_matrix(truth));
  const causal::Placement by_own = causal::placement_of(tangents, causal::view_matrix(graph));
  return {.learned = learned,
          .hops = made.hops,
          .generality = options.generality,
          .relative = options.relative,
          .edge_area = by_truth.edge_area,
          .generality_correlation = by_truth.generality_correlation,
          .own_edge_area = by_own.edge_area,
          .own_generality_correlation = by_own.generality_correlation,
          .mean_radius = tangents.rowwise().norm().mean(),
          .embedding = std::move(made)};
}

}  // namespace

PlacementTrial run_placement(const PlacementOptions& options, const std::function<void()>& placed) {
  const CausalSimulation simulated = simulate_causal(options.simulation);
  PlacementTrial trial;
  trial.truth = simulated.weights.ne(0).to(at::kDouble);
  trial.fit = causal_fit(simulated.table, options.structure);
  trial.metrics = causal_metrics(trial.fit.adjacency, trial.truth);
  for (const bool learned : {false, true}) {
    const at::Tensor& graph = learned ? trial.fit.adjacency : trial.truth;
    const auto add = [&](int64_t hops, double generality, bool relative) {
      CausalEmbeddingOptions embedding = options.embedding;
      embedding.hops = hops;
      embedding.generality = generality;
      embedding.relative = embedding.balanced = relative;
      trial.placed.push_back(place(graph, trial.truth, embedding, learned));
      if (placed) placed();
    };
    for (const int64_t hops : options.hops) {
      for (const double generality : options.generalities) add(hops, generality, true);
    }
    add(kPrintedHops, kPrintedGenerality, false);
  }
  return trial;
}

}  // namespace nsimplex::training

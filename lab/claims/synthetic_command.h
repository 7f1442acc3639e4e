// Declares the embeddings of simulated tables that `lab synthetic` tests.

#pragma once

#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>

#include <functional>
#include <vector>

/// Embeds graphs from synthetic tables and tests whether the points show the graph (Fig. 3 of Xu et
/// al., arXiv 2509.16629).
namespace nsimplex::training {

struct PlacementOptions {
  CausalSimulationOptions simulation;
  CausalFitOptions structure;
  CausalEmbeddingOptions embedding;  ///< without its generality and hops
  std::vector<int64_t> hops;         ///< k and
  std::vector<double> generalities;  ///< lambda_g; all pairs are tried with both graphs
};

/// One embedding of one graph.
struct PlacedGraph {
  bool learned;                                      ///< false: the true graph
  int64_t hops;                                      ///< k
  double generality;                                 ///< lambda_g
  bool relative;                                     ///< false: pi and weights as given, as printed
  double edge_area, generality_correlation;          ///< relative to the true graph
  double own_edge_area, own_generality_correlation;  ///< relative to the embedded graph
  double mean_radius;
  CausalEmbedding embedding;
};

struct PlacementTrial {
  at::Tensor truth;  ///< [M, M], 1 for an edge; weights of a nonlinear model have no meaning
  CausalFit fit;
  CausalMetrics metrics;  ///< of the learned graph
  std::vector<PlacedGraph> placed;
};

/// The paper's choice: lambda_g = 0.1, where pi sums to 1, weights as given, two hops.
inline constexpr double kPrintedGenerality = 0.1;
inline constexpr int64_t kPrintedHops = 2;

/// Draws a model and a table of it, learns the graph, and embeds both graphs with all pairs of hops
/// and generality and with the printed one. `placed` is called after each embedding.
PlacementTrial run_placement(const PlacementOptions& options,
                             const std::function<void()>& placed = {});

}  // namespace nsimplex::training

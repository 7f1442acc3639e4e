#pragma once

#include <cstdint>
#include <vector>

namespace nsimplex {

/// Random DAGs with `degree` edges a node.
enum class CausalGraph {
  erdos_renyi,  ///< ER-k: k M edges, at most M (M - 1) / 2, drawn from all pairs
  scale_free    ///< SF-k: Barabasi and Albert's growth by k links a node, k (M - k) edges
};

/// f_j of x_j = f_j(causes) + noise. Weights w are uniform in +-[weight_low, weight_high].
enum class CausalMechanism {
  linear,      ///< sum_i w_ij x_i
  mlp,         ///< w2 . sigmoid(W1 x_causes), 100 hidden units
  additive_gp  ///< sum_i g_ij(x_i), each g_ij of a Gaussian process with kernel exp(-(x-y)^2/2)
};

/// Distributions of noise, all with mean 0.
enum class CausalNoise { gaussian, exponential, gumbel };

/// do(x_feature = value).
struct Intervention {
  int64_t feature;
  double value;
};

struct CausalSimulationOptions {
  CausalGraph graph = CausalGraph::erdos_renyi;
  int64_t nodes = 10;
  int64_t degree = 2;
  int64_t observations = 1000;
  CausalMechanism mechanism = CausalMechanism::linear;
  CausalNoise noise = CausalNoise::gaussian;
  /// Every noise has the standard deviation 1; otherwise each one of its own, uniform in [0.5, 2].
  bool equal_variances = true;
  double weight_low = 0.5, weight_high = 2.0;
  int64_t seed = 0;         ///< of graph, weights and functions
  int64_t sample_seed = 0;  ///< of the noise, together with `seed`
  std::vector<Intervention> interventions = {};
};

}  // namespace nsimplex

#pragma once

#include <nsimplex/causal_embedding.h>

namespace nsimplex::training {

/// What causal_embed() minimises with Euclidean distances in place of hyperbolic ones, by plain
/// gradient descent: the ablation that leaves curvature out (Xu et al., arXiv 2509.16629, table 3).
///
/// adjacency [M, M], float64. Of the options dimension, steps, learning_rate (0.1 where unset),
/// hops, weight, decay, balanced, generality, relative, restart and seed count; N+ is of both sides, all
/// other nodes are negatives. Coordinates [M, dimension]. Time and memory of a step: O(M^2
/// dimension) and O(M^2 dimension).
at::Tensor euclidean_embedding(const at::Tensor& adjacency, const CausalEmbeddingOptions& options);

}  // namespace nsimplex::training

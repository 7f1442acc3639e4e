#pragma once

#include "causal/embedding/neighbours.h"
#include "causal/matrix.h"
#include "causal/task_loop.h"

namespace nsimplex::causal {

struct Embedding {
  Matrix tangents;            ///< [M, d]
  Eigen::ArrayXd generality;  ///< [M], pi
  double loss = 0;            ///< Eq. 15
  AttractionOptions attraction;
  int64_t without_negatives = 0;
};

/// The graph whose weights count: balanced() or as given.
SparseGraph weights_of(const SparseGraph& graph, const CausalEmbeddingOptions& options);

/// How strongly each node is drawn to the origin, beside the pairs of these attractions W_m:
/// lambda_g sqrt(W_m W) M pi_m, W the mean of those that are not 0; or lambda_g pi_m as printed.
Eigen::ArrayXd pulls(const Eigen::ArrayXd& attractions, const Eigen::ArrayXd& generality,
                     const CausalEmbeddingOptions& options);

/// What nsimplex::causal_embed() computes, of a graph that has been checked. Throws InputError for
/// options that cannot be.
Embedding embed(const SparseGraph& graph, const CausalEmbeddingOptions& options,
                const TaskLoop& loop);

}  // namespace nsimplex::causal

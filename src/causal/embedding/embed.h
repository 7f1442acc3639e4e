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

/// What nsimplex::causal_embed() computes, of a graph that has been checked. Throws InputError for
/// options that cannot be.
Embedding embed(const SparseGraph& graph, const CausalEmbeddingOptions& options,
                const TaskLoop& loop);

}  // namespace nsimplex::causal

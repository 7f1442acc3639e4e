#pragma once

#include <nsimplex/causal_embedding_options.h>

#include <memory>

#include "causal/matrix.h"

namespace nsimplex::causal {

/// Moves points, rows z = r u, against a gradient by z. One step moves a point no further than 1,
/// or its tangent coordinates by no more than a few learning rates, and to no radius beyond
/// kLargestRadius.
class PointOptimiser {
 public:
  virtual ~PointOptimiser() = default;
  virtual void step(Matrix& points, const Matrix& gradient, double learning_rate) = 0;
};

/// For [nodes, dimension] points.
std::unique_ptr<PointOptimiser> make_optimiser(EmbeddingOptimiser kind, int64_t nodes,
                                               int64_t dimension);

/// What a learning rate is where none is given.
double default_learning_rate(EmbeddingOptimiser kind);

}  // namespace nsimplex::causal

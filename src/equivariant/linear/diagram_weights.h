#pragma once

#include <nsimplex/equivariant_linear.h>

#include <vector>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {

/// How the weights of classes become weights of diagrams. A class is the pairs (i, j) with exactly
/// one equality pattern, a diagram those with at least its equalities: only diagrams can be
/// computed from sums over whole axes.
struct DiagramBasis {
  std::vector<EquivariantClass> classes;
  std::vector<Partition> diagrams;  ///< those with a row in `moebius` that is not zero
  at::Tensor moebius;               ///< float64 [diagrams, classes]

  /// For the mean, float64 [classes]: members of each class that end at one output pattern.
  at::Tensor members_per_output;
};

/// Made once for each pair of kinds and kept.
const DiagramBasis& diagram_basis(const TensorKind& input, const TensorKind& output, ClassSet set);

/// weight [classes, C, D] in diagrams: [diagrams, C, D], or [graphs, diagrams, C, D] where
/// node_counts gives each graph its own divisors. `nodes` is n.
at::Tensor diagram_weights(const DiagramBasis& basis, const at::Tensor& weight, Pooling pooling,
                           const c10::SymInt& nodes, const std::optional<at::Tensor>& node_counts);

}  // namespace nsimplex::equivariant

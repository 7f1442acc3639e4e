// Declares the conversion of weights of classes to weights of diagrams.

#pragma once

#include <nsimplex/equivariant_linear.h>

#include <vector>

#include "equivariant/classes/partitions.h"

namespace nsimplex::equivariant {

/// The conversion of weights of classes to weights of diagrams. A class contains the pairs (i, j)
/// with exactly one equality pattern, and a diagram those with at least its equalities. Only
/// diagrams can be computed from sums over whole axes.
struct DiagramBasis {
  std::vector<EquivariantClass> classes;
  std::vector<Partition> diagrams;  ///< those with a row in `moebius` that is not zero
  at::Tensor moebius;               ///< float64 [diagrams, classes]

  /// For the mean, float64 [classes]: the number of members of each class that end at one output
  /// pattern.
  at::Tensor members_per_output;
};

/// Computed once per pair of kinds and kept.
const DiagramBasis& diagram_basis(const TensorKind& input, const TensorKind& output, ClassSet set);

/// weight [classes, C, D] in diagrams: [diagrams, C, D], or [graphs, diagrams, C, D] if node_counts
/// gives each graph divisors of its own. `nodes` is n.
at::Tensor diagram_weights(const DiagramBasis& basis, const at::Tensor& weight, Pooling pooling,
                           const c10::SymInt& nodes, const std::optional<at::Tensor>& node_counts);

}  // namespace nsimplex::equivariant

#pragma once

#include "analysis/directional.h"
#include "analysis/norms.h"

namespace nsimplex::analysis {

/// Where the inputs may go: rows of Euclidean norm up to the radius, or of that norm exactly.
struct RowDomain {
  double radius = 1;
  bool sphere = false;
};

struct AscentProblem {
  TensorFunction function;
  Norm norm = Norm::frobenius;     ///< of the output and of every input's perturbation
  std::vector<RowDomain> domains;  ///< one an input; empty: the inputs stay

  /// For each direction and input, [B]: 1 where the input is perturbed, 0 where not. Exactly one
  /// input a direction and problem; empty: there is only one input.
  std::vector<Tensors> active;
};

struct AscentResult {
  at::Tensor value;  ///< [B]
  Tensors inputs;
  std::vector<Tensors> directions;  ///< of norm 1
};

/// The largest |D^kF(x)[a_1, .., a_k]| that is found over the inputs' domain and directions of norm
/// 1, for each problem by itself: a lower bound of the supremum, attained at what is returned.
///
/// With u the linear function that norms the derivative, a direction goes where <u, D^kF[.]> is
/// largest on the unit ball (for k = 1 and fixed inputs this is Boyd's power method, "The power
/// method for l^p norms", 1974, which for Frobenius norms is the usual one), the directions by
/// turns, and the inputs along the gradient of <u, D^kF(x)[a]>, projected onto the domain. A step
/// that makes a problem smaller is taken back and halved.
AscentResult ascend(const AscentProblem& problem, Tensors inputs, std::vector<Tensors> directions,
                    const AscentOptions& options);

/// A random direction of norm 1 (torch's generator) for each of the inputs, zero where not active.
Tensors random_direction(const Tensors& inputs, Norm norm, const Tensors& active = {});

}  // namespace nsimplex::analysis

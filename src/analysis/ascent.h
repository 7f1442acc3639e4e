#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/analysis.h>

#include <cstdint>
#include <vector>

// Norms of problems that lie one after the other along the leading axis, and what their duality
// says: where a linear function is largest on the unit ball, and which linear function a norm is.
namespace nsimplex::analysis {

enum class Norm {
  frobenius,
  inf_rms  // the largest root mean square of a row, a vector along the last axis
};

/// [B, ..] -> [B].
at::Tensor norms(const at::Tensor& x, Norm norm);

/// u with <u, y> = |y| and <u, .> <= |.|, for each problem: the gradient of the norm at y. Zero
/// where y is.
at::Tensor norming(const at::Tensor& y, Norm norm);

/// The point of the unit ball at which <g, .> is largest; rows (frobenius: problems) of which g
/// says nothing stay as in `fallback`.
at::Tensor steepest(const at::Tensor& g, Norm norm, const at::Tensor& fallback);

/// x with every row longer than `radius` (Euclidean) cut to it; with `sphere` the shorter ones but
/// zero are stretched as well.
at::Tensor project_rows(const at::Tensor& x, double radius, bool sphere);

/// [B] as [B, 1, .., 1], to go with `like`.
at::Tensor as_problems(const at::Tensor& values, const at::Tensor& like);

// Derivatives of a function in given directions, of any order, by going backwards only: the product
// <u, F(x)> is differentiated and contracted with the first direction, the result with the next
// one.

using Tensors = std::vector<at::Tensor>;

/// D^kF(x)[a_1, .., a_k] for k directions, each with one tensor an input: k = 1 is J a, k = 2 the
/// mixed second derivative. As the output of `function`.
at::Tensor directional(const TensorFunction& function, const Tensors& inputs,
                       const std::vector<Tensors>& directions);

struct FormGradients {
  Tensors inputs;
  std::vector<Tensors> directions;
};

/// Gradients of <u, D^kF(x)[a_1, .., a_k]> with respect to the inputs and the directions; zeros
/// where it does not depend on them. The former are left out unless `move`.
FormGradients form_gradients(const TensorFunction& function, const Tensors& inputs,
                             const std::vector<Tensors>& directions, const at::Tensor& u,
                             bool move);

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

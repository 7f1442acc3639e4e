// Declares norms, derivatives in given directions, and their ascent.

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <nsimplex/analysis.h>

#include <cstdint>
#include <vector>

// Norms of problems that lie one after the other along the leading axis, and the results of their
// duality: the point of the unit ball where a linear function is largest, and the linear function
// that attains a norm.
namespace nsimplex::analysis {

enum class Norm {
  frobenius,
  inf_rms  // the largest root mean square of a row, a vector along the last axis
};

/// [B, ..] -> [B].
at::Tensor norms(const at::Tensor& x, Norm norm);

/// u with <u, y> = |y| and <u, .> <= |.|, for each problem: the gradient of the norm at y. It is
/// zero where y is.
at::Tensor norming(const at::Tensor& y, Norm norm);

/// The point of the unit ball at which <g, .> is largest. Rows (frobenius: problems) in which g is
/// zero keep the values of `fallback`.
at::Tensor steepest(const at::Tensor& g, Norm norm, const at::Tensor& fallback);

/// x with every row longer than `radius` (Euclidean) shortened to it. With `sphere`, shorter rows
/// except zeros are stretched to it as well.
at::Tensor project_rows(const at::Tensor& x, double radius, bool sphere);

/// [B] as [B, 1, .., 1], for broadcasting against `like`.
at::Tensor as_problems(const at::Tensor& values, const at::Tensor& like);

// Derivatives of a function in given directions, of any order, with backward passes only. The
// product <u, F(x)> is differentiated and contracted with the first direction, the result with the
// next one, and so on.

using Tensors = std::vector<at::Tensor>;

/// As long as it lives, autograd records, whatever mode the caller is in.
struct GradientsOn {
  c10::InferenceMode inference{false};
  at::AutoGradMode recorded{true};
};

/// A tensor by which derivatives are taken.
at::Tensor leaf(const at::Tensor& x);

/// Refuses an output that autograd does not connect with the input (c10::ValueError). Every
/// derivative would be 0, whatever the function computes.
void require_gradient(const at::Tensor& output);

/// D^kF(x)[a_1, .., a_k] for k directions, each with one tensor per input: k = 1 is J a, k = 2 the
/// mixed second derivative. It has the shape of the output of `function`.
at::Tensor directional(const TensorFunction& function, const Tensors& inputs,
                       const std::vector<Tensors>& directions);

struct FormGradients {
  Tensors inputs;
  std::vector<Tensors> directions;
};

/// Gradients of <u, D^kF(x)[a_1, .., a_k]> with respect to the inputs and the directions; zeros if
/// it does not depend on them. Gradients of the inputs are skipped unless `move`.
FormGradients form_gradients(const TensorFunction& function, const Tensors& inputs,
                             const std::vector<Tensors>& directions, const at::Tensor& u,
                             bool move);

/// The domain of the inputs: rows of Euclidean norm up to the radius, or of exactly that norm.
struct RowDomain {
  double radius = 1;
  bool sphere = false;
};

struct AscentProblem {
  TensorFunction function;
  Norm norm = Norm::frobenius;     ///< of the output and of every input's perturbation
  std::vector<RowDomain> domains;  ///< one per input; empty: the inputs stay fixed

  /// For each direction and input, [B]: 1 if the input is perturbed, otherwise 0. There is exactly
  /// one perturbed input per direction and problem. Empty: there is only one input.
  std::vector<Tensors> active;
};

struct AscentResult {
  at::Tensor value;  ///< [B]
  Tensors inputs;
  std::vector<Tensors> directions;  ///< of norm 1
};

/// Finds the largest |D^kF(x)[a_1, .., a_k]| over the inputs' domain and directions of norm 1, for
/// each problem separately. It is a lower bound of the supremum, attained at the returned point.
///
/// Let u be the linear function that attains the norm of the derivative. Directions are updated
/// alternately: each moves to the point of the unit ball where <u, D^kF[.]> is largest. (For k = 1
/// and fixed inputs this is Boyd's power method, "The power method for l^p norms", 1974, which for
/// Frobenius norms is the usual one.) The inputs move along the gradient of <u, D^kF(x)[a]>,
/// projected onto the domain. A step that makes a problem smaller is taken back and halved.
AscentResult ascend(const AscentProblem& problem, Tensors inputs, std::vector<Tensors> directions,
                    const AscentOptions& options);

/// A random direction of norm 1 (torch's generator) for each input, zero if not active.
Tensors random_direction(const Tensors& inputs, Norm norm, const Tensors& active = {});

}  // namespace nsimplex::analysis

#pragma once

#include <nsimplex/analysis_lipschitz.h>

#include <vector>

// Derivatives of a function in given directions, of any order, by going backwards only: the product
// <u, F(x)> is differentiated and contracted with the first direction, the result with the next
// one.
namespace nsimplex::analysis {

using Tensors = std::vector<at::Tensor>;

/// D^kF(x)[a_1, .., a_k] for k directions, each with one tensor an input: k = 1 is J a, k = 2 the
/// mixed second derivative. As the output of `function`.
NSIMPLEX_API at::Tensor directional(const TensorFunction& function, const Tensors& inputs,
                                    const std::vector<Tensors>& directions);

struct FormGradients {
  Tensors inputs;
  std::vector<Tensors> directions;
};

/// Gradients of <u, D^kF(x)[a_1, .., a_k]> with respect to the inputs and the directions; zeros
/// where it does not depend on them. The former are left out unless `move`.
NSIMPLEX_API FormGradients form_gradients(const TensorFunction& function, const Tensors& inputs,
                                          const std::vector<Tensors>& directions,
                                          const at::Tensor& u, bool move);

}  // namespace nsimplex::analysis

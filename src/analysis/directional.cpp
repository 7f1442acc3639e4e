#include "analysis/directional.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace nsimplex::analysis {
namespace {

using at::Tensor;

Tensors leaves(const Tensors& tensors) {
  Tensors leaves;
  for (const Tensor& tensor : tensors) leaves.push_back(tensor.detach().requires_grad_());
  return leaves;
}

// Gradients of a sum, zeros where it does not depend on a tensor: a linear function has no second
// derivative, and autograd then has no graph either.
Tensors gradients(const Tensor& sum, const Tensors& wrt, bool differentiable) {
  Tensors found(wrt.size());
  if (sum.requires_grad()) {
    found = torch::autograd::grad({sum}, wrt, {}, /*retain_graph=*/differentiable, differentiable,
                                  /*allow_unused=*/true);
  }
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (!found[i].defined()) found[i] = at::zeros_like(wrt[i]);
  }
  return found;
}

Tensor dot(const Tensors& a, const Tensors& b) {
  Tensor sum;
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor term = (a[i] * b[i]).sum();
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

// <u, D^kF(x)[a_1, .., a_k]>, summed over problems, which are independent.
Tensor form(const Tensor& output, const Tensors& x, const std::vector<Tensors>& directions,
            const Tensor& u) {
  Tensor value = (u * output).sum();
  for (const Tensors& direction : directions) value = dot(gradients(value, x, true), direction);
  return value;
}

}  // namespace

Tensor directional(const TensorFunction& function, const Tensors& inputs,
                   const std::vector<Tensors>& directions) {
  const at::AutoGradMode on(true);
  const Tensors x = leaves(inputs);
  const Tensor output = function(x);
  // The form is linear in u, so that its gradient there is the derivative, wherever it is taken.
  const Tensor u = at::zeros_like(output).detach().requires_grad_();
  return gradients(form(output, x, directions, u), {u}, false)[0];
}

FormGradients form_gradients(const TensorFunction& function, const Tensors& inputs,
                             const std::vector<Tensors>& directions, const Tensor& u, bool move) {
  const at::AutoGradMode on(true);
  const Tensors x = leaves(inputs);
  std::vector<Tensors> a;
  Tensors wrt;
  if (move) wrt = x;
  for (const Tensors& direction : directions) {
    a.push_back(leaves(direction));
    wrt.insert(wrt.end(), a.back().begin(), a.back().end());
  }
  const Tensors found = gradients(form(function(x), x, a, u), wrt, false);
  FormGradients result;
  auto next = found.begin();
  const auto take = [&](size_t count) {
    next += static_cast<int64_t>(count);
    return Tensors(next - static_cast<int64_t>(count), next);
  };
  if (move) result.inputs = take(x.size());
  for (const Tensors& direction : directions) result.directions.push_back(take(direction.size()));
  return result;
}

}  // namespace nsimplex::analysis

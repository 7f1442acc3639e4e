// Maximises derivatives of a function over bounded inputs and directions by gradient ascent.

#include "analysis/ascent.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace nsimplex::analysis {
namespace {

using at::Tensor;

Tensor row_norms(const Tensor& x) { return x.norm(2, -1, /*keepdim=*/true); }

// x / length, or `otherwise` if the length is zero.
Tensor normalized(const Tensor& x, const Tensor& length, const Tensor& otherwise) {
  return at::where(length > 0, x / length, otherwise);
}

}  // namespace

Tensor as_problems(const Tensor& values, const Tensor& like) {
  std::vector<int64_t> shape(like.dim(), 1);
  shape[0] = values.size(0);
  return values.view(shape);
}

Tensor norms(const Tensor& x, Norm norm) {
  if (norm == Norm::frobenius) return x.flatten(1).norm(2, 1);
  return row_norms(x).flatten(1).amax(1) / std::sqrt(static_cast<double>(x.size(-1)));
}

Tensor norming(const Tensor& y, Norm norm) {
  const Tensor zero = at::zeros_like(y);
  if (norm == Norm::frobenius) return normalized(y, as_problems(norms(y, norm), y), zero);
  const Tensor lengths = row_norms(y);
  const Tensor flat = lengths.flatten(1);
  const Tensor first = at::zeros_like(flat).scatter_(1, flat.argmax(1, /*keepdim=*/true), 1);
  const Tensor rows = first.view_as(lengths) / std::sqrt(static_cast<double>(y.size(-1)));
  return normalized(y, lengths, zero) * rows;
}

Tensor steepest(const Tensor& g, Norm norm, const Tensor& fallback) {
  if (norm == Norm::frobenius) return normalized(g, as_problems(norms(g, norm), g), fallback);
  const Tensor lengths = row_norms(g);
  const double root = std::sqrt(static_cast<double>(g.size(-1)));
  return at::where(lengths > 0, g / lengths * root, fallback);
}

Tensor project_rows(const Tensor& x, double radius, bool sphere) {
  const Tensor lengths = row_norms(x);
  const Tensor moved = sphere ? lengths > 0 : lengths > radius;
  return at::where(moved, x / lengths * radius, x);
}

Tensor leaf(const Tensor& x) {
  return (x.is_inference() ? x.clone() : x).detach().requires_grad_();
}

void require_gradient(const Tensor& output) {
  TORCH_CHECK_VALUE(output.requires_grad(),
                    "function: expected an output that depends on the input for autograd, got one "
                    "without a gradient; NoGradGuard, InferenceMode and detach in it cut it off");
}

namespace {

using at::Tensor;

Tensors leaves(const Tensors& tensors) {
  Tensors leaves;
  for (const Tensor& tensor : tensors) leaves.push_back(leaf(tensor));
  return leaves;
}

// Gradients of a sum, with zeros if it does not depend on a tensor. A linear function has no second
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

// <u, D^kF(x)[a_1, .., a_k]>, summed over the problems, which are independent.
Tensor form(const Tensor& output, const Tensors& x, const std::vector<Tensors>& directions,
            const Tensor& u) {
  Tensor value = (u * output).sum();
  for (const Tensors& direction : directions) value = dot(gradients(value, x, true), direction);
  return value;
}

}  // namespace

Tensor directional(const TensorFunction& function, const Tensors& inputs,
                   const std::vector<Tensors>& directions) {
  const GradientsOn on;
  const Tensors x = leaves(inputs);
  const Tensor output = function(x);
  require_gradient(output);
  // The form is linear in u, so its gradient with respect to u is the derivative, at any u.
  const Tensor u = at::zeros_like(output).detach().requires_grad_();
  return gradients(form(output, x, directions, u), {u}, false)[0];
}

FormGradients form_gradients(const TensorFunction& function, const Tensors& inputs,
                             const std::vector<Tensors>& directions, const Tensor& u, bool move) {
  const GradientsOn on;
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

namespace {

using at::Tensor;

constexpr double kGrowth = 1.3, kShrink = 0.5;  // factors of a step after success and after failure
constexpr int64_t kPatience = 8;                // steps without growth before the end

// For each problem `a` if `choice` is true, otherwise `b`.
Tensors choose(const Tensor& choice, const Tensors& a, const Tensors& b) {
  Tensors chosen;
  for (size_t i = 0; i < a.size(); ++i) {
    chosen.push_back(at::where(as_problems(choice, a[i]), a[i], b[i]));
  }
  return chosen;
}

Tensors masked(Tensors tensors, const Tensors& active) {
  for (size_t i = 0; i < active.size(); ++i) {
    tensors[i] = tensors[i] * as_problems(active[i], tensors[i]);
  }
  return tensors;
}

class Ascent {
 public:
  Ascent(const AscentProblem& problem, AscentResult start, double step)
      : problem_(problem), now_(std::move(start)) {
    derivative_ = directional(problem_.function, now_.inputs, now_.directions);
    now_.value = norms(derivative_, problem_.norm);
    steps_ = at::full_like(now_.value, step);
  }

  // One step of the inputs and of the direction with number `turn`.
  void advance(size_t turn) {
    const Tensor u = norming(derivative_, problem_.norm);
    const bool move = !problem_.domains.empty();
    const FormGradients slopes =
        form_gradients(problem_.function, now_.inputs, now_.directions, u, move);
    AscentResult next = now_;
    Tensors& direction = next.directions[turn];
    for (size_t i = 0; i < direction.size(); ++i) {
      direction[i] = steepest(slopes.directions[turn][i], problem_.norm, direction[i]);
    }
    if (!problem_.active.empty()) direction = masked(direction, problem_.active[turn]);
    for (size_t i = 0; move && i < next.inputs.size(); ++i) {
      next.inputs[i] = moved(next.inputs[i], slopes.inputs[i], problem_.domains[i]);
    }
    const Tensor derivative = directional(problem_.function, next.inputs, next.directions);
    next.value = norms(derivative, problem_.norm);
    keep_better(next, derivative);
  }

  const AscentResult& result() const { return now_; }

 private:
  // A step along the gradient that moves no row further than the step's share of the radius.
  Tensor moved(const Tensor& x, const Tensor& slope, const RowDomain& domain) const {
    const Tensor longest = slope.norm(2, -1, /*keepdim=*/true).flatten(1).amax(1);
    const Tensor factor = at::where(longest > 0, steps_ * domain.radius / longest, 0);
    return project_rows(x + as_problems(factor, x) * slope, domain.radius, domain.sphere);
  }

  void keep_better(const AscentResult& next, const Tensor& derivative) {
    const Tensor better = next.value >= now_.value;  // false for NaN as well
    derivative_ = choose(better, {derivative}, {derivative_})[0];
    now_.inputs = choose(better, next.inputs, now_.inputs);
    for (size_t k = 0; k < now_.directions.size(); ++k) {
      now_.directions[k] = choose(better, next.directions[k], now_.directions[k]);
    }
    now_.value = at::where(better, next.value, now_.value);
    steps_ = at::where(better, steps_ * kGrowth, steps_ * kShrink).clamp_max(1);
  }

  const AscentProblem& problem_;
  AscentResult now_;
  Tensor derivative_, steps_;
};

}  // namespace

AscentResult ascend(const AscentProblem& problem, Tensors inputs, std::vector<Tensors> directions,
                    const AscentOptions& options) {
  const c10::InferenceMode off(false);  // autograd could not use what is computed in it
  for (size_t i = 0; i < problem.domains.size(); ++i) {
    inputs[i] = project_rows(inputs[i], problem.domains[i].radius, problem.domains[i].sphere);
  }
  Ascent ascent(problem, {{}, std::move(inputs), std::move(directions)}, options.step);
  Tensor before = ascent.result().value;
  for (int64_t step = 0; step < options.steps; ++step) {
    if (options.between) options.between();
    ascent.advance(static_cast<size_t>(step) % ascent.result().directions.size());
    if ((step + 1) % kPatience != 0) continue;
    const Tensor& value = ascent.result().value;
    if ((value - before <= options.tolerance * value).all().item<bool>()) break;
    before = value;
  }
  return ascent.result();
}

Tensors random_direction(const Tensors& inputs, Norm norm, const Tensors& active) {
  const c10::InferenceMode off(false);
  Tensors direction;
  for (const Tensor& input : inputs) {
    direction.push_back(steepest(at::randn_like(input), norm, at::zeros_like(input)));
  }
  return masked(std::move(direction), active);
}

}  // namespace nsimplex::analysis

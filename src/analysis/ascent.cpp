#include "analysis/ascent.h"

#include <ATen/ATen.h>

namespace nsimplex::analysis {
namespace {

using at::Tensor;

constexpr double kGrowth = 1.3, kShrink = 0.5;  // of a step that helped, that did not
constexpr int64_t kPatience = 8;                // steps without growth before the end

// Of each problem from `a` where `choice`, from `b` elsewhere.
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

  // One step of the inputs and of the direction whose turn it is.
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
  Tensors direction;
  for (const Tensor& input : inputs) {
    direction.push_back(steepest(at::randn_like(input), norm, at::zeros_like(input)));
  }
  return masked(std::move(direction), active);
}

}  // namespace nsimplex::analysis

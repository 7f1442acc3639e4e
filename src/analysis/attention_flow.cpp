// Follows tokens through the continuous-time model of attention.

#include "analysis/attention_flow.h"
#include "support/plain_tensor.h"

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>

#include <cmath>
#include <vector>

namespace nsimplex {

using at::Tensor;

namespace {

Tensor largest_distance(const Tensor& tokens) {
  const Tensor wide = tokens.to(at::kDouble);
  return at::cdist(wide, wide).flatten(-2).amax(-1);
}

}  // namespace

AttentionFlow attention_flow(const std::function<Tensor(const Tensor&)>& function,
                             const Tensor& tokens, double time, const FlowOptions& options) {
  constexpr int64_t kMostSteps = 1'000'000;
  TORCH_CHECK_VALUE(tokens.dim() >= 2 && is_floating(tokens),
                    "[attention_flow] tokens: expected floating [.., n, d], got ", tokens.sizes(),
                    " of ", tokens.scalar_type());
  TORCH_CHECK_VALUE(time > 0 && std::isfinite(time),
                    "[attention_flow] time: expected a positive number, got ", time);
  TORCH_CHECK_VALUE(options.steps >= 1 && options.steps <= kMostSteps,
                    "[attention_flow] steps: expected 1 to ", kMostSteps, ", got ", options.steps);
  const at::NoGradGuard no_grad;
  const auto slope = [&](const Tensor& here) {
    Tensor found = function(here);
    TORCH_CHECK_VALUE(found.sizes() == here.sizes(), "[attention_flow] function: expected shape ",
                      here.sizes(), ", got ", found.sizes());
    return found;
  };
  const double width = time / static_cast<double>(options.steps);
  Tensor now = tokens;
  std::vector<Tensor> energies{dirichlet_energy(now)};
  std::vector<Tensor> distances{largest_distance(now)};
  for (int64_t step = 0; step < options.steps; ++step) {
    now = analysis::flow_step(slope, now, width, options);
    energies.push_back(dirichlet_energy(now));
    distances.push_back(largest_distance(now));
  }
  return {at::arange(options.steps + 1, at::kDouble) * width, now, at::stack(energies),
          at::stack(distances)};
}

}  // namespace nsimplex

// One step of the continuous-time model of attention.

#pragma once

#include <ATen/ATen.h>
#include <nsimplex/analysis.h>

namespace nsimplex::analysis {

/// One step of attention_flow(), of length `width`.
template <class Slope>
at::Tensor flow_step(const Slope& slope, const at::Tensor& tokens, double width,
                     const FlowOptions& options) {
  at::Tensor change = slope(tokens);
  if (options.method == FlowMethod::rk4) {
    const at::Tensor second = slope(tokens + width / 2 * change);
    const at::Tensor third = slope(tokens + width / 2 * second);
    const at::Tensor fourth = slope(tokens + width * third);
    change = (change + 2 * second + 2 * third + fourth) / 6;
  }
  at::Tensor next = tokens + width * change;
  return options.normalized ? next / next.square().mean(-1, /*keepdim=*/true).sqrt() : next;
}

}  // namespace nsimplex::analysis

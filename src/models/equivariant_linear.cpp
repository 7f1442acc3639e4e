#include <ATen/ATen.h>
#include <nsimplex/equivariant_layers.h>

#include <iterator>

#include "models/initialize_classes.h"

namespace nsimplex {
EquivariantLinearImpl::EquivariantLinearImpl(const EquivariantLinearOptions& options)
    : options_(options) {
  TORCH_CHECK_VALUE(options.in_channels > 0 && options.out_channels > 0,
                    "[EquivariantLinear] in_channels, out_channels: expected at least 1, got ",
                    options.in_channels, ", ", options.out_channels);
  reset();
}

void EquivariantLinearImpl::reset() {
  const auto [input, output, in, out, set, pooling, with_bias] = options_;
  const auto count = std::ssize(equivariant_classes(input, output, set));
  weight_ = register_parameter("weight", at::empty({count, in, out}));
  if (with_bias) {
    const auto biases = std::ssize(equivariant_classes({.order = 0}, output));
    bias_ = register_parameter("bias", at::empty({biases, out}));
  }
  reset_parameters();
}

void EquivariantLinearImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  initialize_weight(weight_, weight_.size(0) * weight_.size(1));
  if (bias_.defined()) bias_.zero_();
}

std::optional<at::Tensor> EquivariantLinearImpl::bias() const {
  return bias_.defined() ? std::optional(bias_) : std::nullopt;
}

at::Tensor EquivariantLinearImpl::forward(const at::Tensor& x,
                                          const std::optional<at::Tensor>& node_counts,
                                          std::optional<int64_t> nodes) {
  return equivariant_linear(
      x, weight_, bias(),
      {options_.input, options_.output, options_.classes, options_.pooling, node_counts, nodes});
}

at::Tensor EquivariantLinearImpl::forward(const at::Tensor& x, const EquivariantPlan& plan) {
  TORCH_CHECK_VALUE(same_kind(plan.input, options_.input) &&
                        same_kind(plan.output, options_.output) && plan.classes == options_.classes,
                    "[EquivariantLinear] plan: expected one of the layer's kinds and classes, ",
                    options_.input.order, " -> ", options_.output.order, ", got ", plan.input.order,
                    " -> ", plan.output.order);
  return equivariant_linear_sparse(x, weight_, bias(), plan, options_.pooling);
}

}  // namespace nsimplex

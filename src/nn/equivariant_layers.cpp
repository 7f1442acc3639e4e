// The equivariant attention and linear layers as torch modules.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_layers.h>

#include <cmath>
#include <iterator>

#include "nn/initialize.h"

namespace nsimplex {

using at::Tensor;

RandomFeaturesImpl::RandomFeaturesImpl(int64_t dim, int64_t features)
    : dim_(dim), features_(features) {
  TORCH_CHECK_VALUE(dim > 0, "[RandomFeatures] dim: expected at least 1, got ", dim);
  TORCH_CHECK_VALUE(features >= 0, "[RandomFeatures] features: expected at least 0, got ",
                    features);
  const auto width = static_cast<double>(dim);
  if (features_ == 0)
    features_ = std::max<int64_t>(1, static_cast<int64_t>(width * std::log(width)));
  reset();
}

void RandomFeaturesImpl::reset() {
  directions_ = register_buffer("directions", orthogonal_directions(dim_, features_));
}

void RandomFeaturesImpl::redraw(const std::optional<at::Generator>& generator) {
  const at::NoGradGuard no_grad;
  directions_.copy_(orthogonal_directions(dim_, features_, generator));
}

EquivariantAttentionImpl::EquivariantAttentionImpl(const EquivariantAttentionOptions& options,
                                                   RandomFeatures features)
    : options_(options), features_(std::move(features)) {
  auto& [input, output, in, out, heads, head_dim, form, classes, normalise, map] = options_;
  TORCH_CHECK_VALUE(in > 0 && out > 0,
                    "[EquivariantAttention] in_channels, out_channels: expected at least 1, got ",
                    in, ", ", out);
  TORCH_CHECK_VALUE(heads > 0, "[EquivariantAttention] heads: expected at least 1, got ", heads);
  TORCH_CHECK_VALUE(head_dim >= 0, "[EquivariantAttention] head_dim: expected at least 0, got ",
                    head_dim);
  if (head_dim == 0) {
    TORCH_CHECK_VALUE(out % heads == 0, "[EquivariantAttention] heads: expected a divisor of ", out,
                      " out_channels where head_dim is not given, got ", heads);
    head_dim = out / heads;
  }
  TORCH_CHECK_VALUE(form != AttentionForm::softmax || normalise,
                    "[EquivariantAttention] normalise: expected true for form softmax, got false");
  reset();
}

void EquivariantAttentionImpl::reset() {
  const auto& [input, output, in, out, heads, head_dim, form, class_options, normalise, map] =
      options_;
  const auto classes = equivariant_attention_classes(input, output, class_options);
  const auto count = std::ssize(classes);
  int64_t queries = 0, keys = 0;
  for (const EquivariantAttentionClass& each : classes) {
    queries += each.query_weights;
    keys += each.key_weights;
  }
  const int64_t width = heads * head_dim;
  query_weight_ = register_parameter("query_weight", at::empty({queries, in, width}));
  query_bias_ = register_parameter("query_bias", at::empty({count, width}));
  key_weight_ = register_parameter("key_weight", at::empty({keys, in, width}));
  key_bias_ = register_parameter("key_bias", at::empty({count, width}));
  value_weight_ = register_parameter("value_weight", at::empty({count, in, width}));
  output_weight_ = register_parameter("output_weight", at::empty({count, width, out}));
  light_ = register_module("light",
                           EquivariantLinear(EquivariantLinearOptions{.input = input,
                                                                      .output = output,
                                                                      .in_channels = in,
                                                                      .out_channels = out,
                                                                      .classes = ClassSet::light,
                                                                      .bias = false}));
  if (form != AttentionForm::softmax) {
    if (!features_) features_ = RandomFeatures(head_dim);
    TORCH_CHECK_VALUE(features_->directions().size(0) == head_dim,
                      "[EquivariantAttention] features: expected directions of ", head_dim,
                      " channels, got ", features_->directions().size(0));
    register_module("features", features_);
  }
  reset_parameters();
}

void EquivariantAttentionImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  const auto classes =
      equivariant_attention_classes(options_.input, options_.output, options_.classes);
  int64_t first_query = 0, first_key = 0;
  const auto draw = [&](Tensor& weight, int64_t& first, int64_t count) {
    Tensor own = weight.narrow(0, first, count);
    initialize_weight(own, count * options_.in_channels);
    first += count;
  };
  for (const EquivariantAttentionClass& each : classes) {
    draw(query_weight_, first_query, each.query_weights);
    draw(key_weight_, first_key, each.key_weights);
  }
  query_bias_.zero_();
  key_bias_.zero_();
  initialize_weight(value_weight_, options_.in_channels);
  initialize_weight(output_weight_, output_weight_.size(0) * output_weight_.size(1));
  light_->reset_parameters();
}

Tensor EquivariantAttentionImpl::forward(const Tensor& x, const EquivariantAttentionPlan& plan,
                                         const EquivariantPlan& light) {
  TORCH_CHECK_VALUE(same_kind(plan.input, options_.input) &&
                        same_kind(plan.output, options_.output) &&
                        plan.classes.keys == options_.classes.keys &&
                        plan.classes.global == options_.classes.global,
                    "[EquivariantAttention] plan: expected one of the layer's kinds and classes, ",
                    options_.input.order, " -> ", options_.output.order, ", got ", plan.input.order,
                    " -> ", plan.output.order);
  AttentionFormOptions form{.heads = options_.heads,
                            .form = options_.form,
                            .normalise = options_.normalise,
                            .directions = std::nullopt,
                            .features = options_.features};
  if (features_) form.directions = features_->directions().to(x.scalar_type());
  const Tensor attended = equivariant_attention(
      x, {query_weight_, query_bias_, key_weight_, key_bias_, value_weight_, output_weight_}, plan,
      form);
  return attended + light_->forward(x, light);
}

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

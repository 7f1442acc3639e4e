// The equivariant transformer encoder layer and its plan.

#include <ATen/ATen.h>
#include <nsimplex/equivariant_layers.h>

#include <iterator>

#include "graph/graph_view.h"
#include "nn/initialize.h"

namespace nsimplex {
namespace {

using at::Tensor;

bool is_lightweight(const EquivariantEncoderOptions& options) {
  const TensorKind& kind = options.attention.output;
  if (options.mlp != MlpForm::automatic) return options.mlp == MlpForm::lightweight;
  return kind.order <= 3 && kind.symmetry != Symmetry::loop_free;
}

// The rows of every equality pattern of the tuples of a list, in the order of the classes 0 -> l.
std::vector<Tensor> rows_of_patterns(const TupleBatch& batch, const TensorKind& kind) {
  const int64_t order = batch.order();
  // A number per pattern: for every position, the first position with the same entry.
  Tensor own = at::zeros({batch.size()}, at::kLong);
  for (int64_t p = 0; p < order; ++p) {
    const Tensor same = batch.tuples.eq(batch.tuples.narrow(1, p, 1)).to(at::kByte);
    own = own * order + same.argmax(1);
  }
  std::vector<Tensor> rows;
  for (const EquivariantClass& each : equivariant_classes({.order = 0}, kind)) {
    Tensor matches = at::zeros({batch.size()}, at::kBool);
    for (const Partition& member : each.members) {
      int64_t number = 0;
      for (size_t p = 0; p < member.size(); ++p) {
        const auto first = std::find(member.begin(), member.end(), member[p]);
        number = number * order + (first - member.begin());
      }
      matches = matches.logical_or(own == number);
    }
    rows.push_back(matches.nonzero().squeeze(1));
  }
  return rows;
}

void check_kind(const TupleBatch& batch, const TensorKind& kind, const char* name) {
  TORCH_CHECK_VALUE(batch.order() == kind.order && batch.symmetry == kind.symmetry,
                    "[equivariant_encoder_plan] ", name,
                    ": expected tuples of the options' kind, "
                    "order ",
                    kind.order, ", got order ", batch.order(),
                    batch.order() == kind.order ? " of another symmetry" : "");
}

}  // namespace

PatternLinearImpl::PatternLinearImpl(const TensorKind& kind, int64_t in_channels,
                                     int64_t out_channels)
    : kind_(kind), in_channels_(in_channels), out_channels_(out_channels) {
  TORCH_CHECK_VALUE(in_channels > 0 && out_channels > 0,
                    "[PatternLinear] in_channels, out_channels: expected at least 1, got ",
                    in_channels, ", ", out_channels);
  reset();
}

void PatternLinearImpl::reset() {
  const auto patterns = std::ssize(equivariant_classes({.order = 0}, kind_));
  weight_ = register_parameter("weight", at::empty({patterns, in_channels_, out_channels_}));
  bias_ = register_parameter("bias", at::empty({patterns, out_channels_}));
  reset_parameters();
}

void PatternLinearImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  initialize_weight(weight_, in_channels_);
  bias_.zero_();
}

Tensor PatternLinearImpl::forward(const Tensor& x, const std::vector<Tensor>& rows) {
  TORCH_CHECK_VALUE(std::ssize(rows) == weight_.size(0), "[PatternLinear] rows: expected ",
                    weight_.size(0), " patterns, got ", rows.size());
  std::vector<Tensor> out;
  for (size_t p = 0; p < rows.size(); ++p) {
    const auto pattern = static_cast<int64_t>(p);
    out.push_back(at::addmm(bias_[pattern], x.index_select(0, rows[p]), weight_[pattern]));
  }
  const Tensor places = at::cat(rows);
  return at::cat(out).index_select(0, places.argsort());
}

EquivariantEncoderPlan EquivariantEncoderPlan::to(at::Device device) const {
  EquivariantEncoderPlan moved{attention.to(device), light.to(device), std::nullopt, {}};
  if (mlp) moved.mlp = mlp->to(device);
  for (const Tensor& rows : pattern_rows) moved.pattern_rows.push_back(rows.to(device));
  return moved;
}

EquivariantEncoderPlan equivariant_encoder_plan(const TupleBatch& input, const TupleBatch& output,
                                                const EquivariantEncoderOptions& options) {
  const EquivariantAttentionOptions& attention = options.attention;
  check_kind(input, attention.input, "input");
  check_kind(output, attention.output, "output");
  const bool input_loops = attention.input.loops, output_loops = attention.output.loops;
  const AttentionForm form =
      attention.form == AttentionForm::decoupled ? AttentionForm::softmax : attention.form;
  EquivariantEncoderPlan plan{
      equivariant_attention_plan(input, output,
                                 {form, attention.classes, input_loops, output_loops}),
      equivariant_plan(input, output, {ClassSet::light, input_loops, output_loops}),
      std::nullopt,
      {}};
  if (is_lightweight(options) && same_kind(attention.input, attention.output) &&
      graph::same_tuples(graph::ContiguousBatch(input).view(),
                         graph::ContiguousBatch(output).view())) {
    plan.mlp = plan.light;
  } else if (is_lightweight(options)) {
    plan.mlp = equivariant_plan(output, output, {ClassSet::light, output_loops, output_loops});
  } else {
    plan.pattern_rows = rows_of_patterns(output, attention.output);
  }
  return plan;
}

EquivariantEncoderImpl::EquivariantEncoderImpl(const EquivariantEncoderOptions& options,
                                               RandomFeatures features)
    : options_(options), features_(std::move(features)) {
  const EquivariantAttentionOptions& attention = options_.attention;
  TORCH_CHECK_VALUE(options_.hidden >= 0, "[EquivariantEncoder] hidden: expected at least 0, got ",
                    options_.hidden);
  TORCH_CHECK_VALUE(options_.dropout >= 0 && options_.dropout < 1,
                    "[EquivariantEncoder] dropout: expected in [0, 1), got ", options_.dropout);
  TORCH_CHECK_VALUE(!options_.residual || (same_kind(attention.input, attention.output) &&
                                           attention.in_channels == attention.out_channels),
                    "[EquivariantEncoder] residual: expected input and output of one kind and "
                    "width, got ",
                    attention.in_channels, " and ", attention.out_channels, " channels");
  if (options_.hidden == 0) options_.hidden = attention.out_channels;
  reset();
}

bool EquivariantEncoderImpl::lightweight() const { return is_lightweight(options_); }

void EquivariantEncoderImpl::reset() {
  const EquivariantAttentionOptions& attention = options_.attention;
  const int64_t out = attention.out_channels, hidden = options_.hidden;
  attention_ = register_module("attention", EquivariantAttention(attention, features_));
  const auto norm = [](int64_t channels) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}));
  };
  if (options_.form == EncoderForm::standard) {
    norm_attention_ = register_module("norm_attention", norm(attention.in_channels));
    norm_mlp_ = register_module("norm_mlp", norm(out));
  }
  const TensorKind& kind = attention.output;
  if (lightweight()) {
    const auto light = [&](int64_t from, int64_t to) {
      return EquivariantLinear(EquivariantLinearOptions{.input = kind,
                                                        .output = kind,
                                                        .in_channels = from,
                                                        .out_channels = to,
                                                        .classes = ClassSet::light});
    };
    light_in_ = register_module("mlp_in", light(out, hidden));
    light_out_ = register_module("mlp_out", light(hidden, out));
  } else {
    pattern_in_ = register_module("mlp_in", PatternLinear(kind, out, hidden));
    pattern_out_ = register_module("mlp_out", PatternLinear(kind, hidden, out));
  }
}

Tensor EquivariantEncoderImpl::dropped(const Tensor& x) const {
  return options_.dropout > 0 ? at::dropout(x, options_.dropout, is_training()) : x;
}

Tensor EquivariantEncoderImpl::mlp(const Tensor& y, const EquivariantEncoderPlan& plan) {
  const bool paper = options_.form == EncoderForm::paper;
  TORCH_CHECK_VALUE(plan.mlp.has_value() == lightweight(),
                    "[EquivariantEncoder] plan: expected one for the options' form of the MLP");
  const Tensor inner =
      lightweight() ? light_in_->forward(y, *plan.mlp) : pattern_in_->forward(y, plan.pattern_rows);
  const Tensor hidden = dropped(paper ? at::relu(inner) : at::gelu(inner));
  return dropped(lightweight() ? light_out_->forward(hidden, *plan.mlp)
                               : pattern_out_->forward(hidden, plan.pattern_rows));
}

Tensor EquivariantEncoderImpl::forward(const Tensor& x, const EquivariantEncoderPlan& plan) {
  const bool norms = options_.form == EncoderForm::standard;
  Tensor y = dropped(
      attention_->forward(norms ? norm_attention_->forward(x) : x, plan.attention, plan.light));
  if (options_.residual) y = y + x;
  return y + mlp(norms ? norm_mlp_->forward(y) : y, plan);
}

}  // namespace nsimplex

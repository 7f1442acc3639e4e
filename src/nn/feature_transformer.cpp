// The transformer over the features of a table, with reconstruction and prediction.

#include <ATen/ATen.h>
#include <nsimplex/feature_transformer.h>

#include <cmath>
#include <numbers>

#include "nn/initialize.h"
#include "nn/sinusoids.h"
#include "support/plain_tensor.h"
#include "support/require.h"

namespace nsimplex {
namespace {

using at::Tensor;

// Deviation of the frequencies of periodic values, as Gorishniy et al. choose it for standardised
// columns.
constexpr double kFrequencyDeviation = 0.1;

FeatureTransformerOptions checked(FeatureTransformerOptions o) {
  constexpr char kAt[] = "[FeatureTransformer] ";
  require(o.features >= 1, kAt, "features: expected at least 1, got ", o.features);
  require(o.heads >= 1, kAt, "heads: expected at least 1, got ", o.heads);
  require(o.dim >= 1 && o.dim % o.heads == 0, kAt, "dim: expected a multiple of heads ", o.heads,
          ", got ", o.dim);
  require(o.layers >= 1, kAt, "layers: expected at least 1, got ", o.layers);
  require(o.bins >= 1, kAt, "bins: expected at least 1, got ", o.bins);
  require(o.outputs >= 0, kAt, "outputs: expected 0 or more, got ", o.outputs);
  const int64_t width = o.dim / o.heads;
  const bool simplicial = o.backbone == FeatureBackbone::simplicial;
  require(!simplicial || o.order >= 1, kAt, "order: expected at least 1, got ", o.order);
  require(!simplicial || width % (o.order + 1) == 0, kAt,
          "dim: expected a multiple of heads times order + 1 = ", o.heads * (o.order + 1),
          " for backbone simplicial, got ", o.dim);
  const bool rotary = o.encoding == FeatureEncoding::rotary;
  require(!rotary || simplicial || width % 2 == 0, kAt,
          "dim: expected an even number of channels a head for rotary, got ", width);
  require(o.encoding != FeatureEncoding::relative || o.backbone == FeatureBackbone::softmax, kAt,
          "encoding: relative needs backbone softmax");
  require(!o.learned_scale || rotary, kAt, "learned_scale: only of encoding rotary");
  require(o.values != FeatureValues::periodic || o.dim % 2 == 0, kAt,
          "dim: expected an even width for periodic values, got ", o.dim);
  return o;
}

void normal(Tensor& tensor, const std::optional<at::Generator>& generator, double deviation = 1.0) {
  const at::NoGradGuard no_grad;
  tensor.normal_(0.0, deviation, generator);
}

void initialize_linear(torch::nn::Linear& linear, const std::optional<at::Generator>& generator) {
  detail::initialize(linear->weight, generator);
  const at::NoGradGuard no_grad;
  linear->bias.zero_();
}

}  // namespace

FeatureTransformerImpl::FeatureTransformerImpl(const FeatureTransformerOptions& options,
                                               const std::optional<at::Generator>& generator)
    : options_(checked(options)) {
  const auto& o = options_;
  cls_ = register_parameter("cls", at::empty({o.dim}));
  mask_ = register_parameter("mask", at::empty({o.dim}));
  mark_ = register_parameter("mark", at::empty({o.dim}));
  const bool periodic = o.values == FeatureValues::periodic;
  if (periodic) frequencies_ = register_parameter("frequencies", at::empty({o.dim / 2}));
  if (o.values == FeatureValues::bins) {
    codes_ = register_module("value", torch::nn::Embedding(o.bins + 1, o.dim));
  } else if (periodic || o.values == FeatureValues::linear) {
    value_ = register_module("value", torch::nn::Linear(periodic ? o.dim : 1, o.dim));
  }
  const auto rows = [&](const char* name) {
    return register_module(name, torch::nn::Embedding(o.features, o.dim));
  };
  if (o.identity) identity_ = rows("identity");
  if (o.encoding == FeatureEncoding::learned) encoding_ = rows("encoding");
  positions_ = register_module("positions", FeaturePositions(o));
  blocks_ = register_module("blocks", torch::nn::ModuleList());
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    const std::shared_ptr<SimplicialAttentionImpl> attention =
        std::make_shared<FeatureAttentionImpl>(o, positions_, layer);
    blocks_->push_back(TransformerBlock(
        SimplicialAttention(attention),
        FeedForwardOptions{.dim = o.dim, .hidden = o.hidden, .activation = Activation::gelu}));
  }
  norm_ = register_module("norm", RMSNorm(o.dim));
  const bool classes = o.values == FeatureValues::bins;
  reconstruction_ =
      register_module("reconstruction", torch::nn::Linear(o.dim, classes ? o.bins + 1 : 1));
  if (o.outputs > 0) head_ = register_module("head", torch::nn::Linear(o.dim, o.outputs));
  reset_parameters(generator);
}

void FeatureTransformerImpl::reset_parameters(const std::optional<at::Generator>& generator) {
  normal(cls_, generator);
  normal(mask_, generator);
  normal(mark_, generator);
  if (frequencies_.defined()) normal(frequencies_, generator, kFrequencyDeviation);
  if (codes_) normal(codes_->weight, generator);
  if (value_) initialize_linear(value_, generator);
  if (identity_) normal(identity_->weight, generator);
  if (encoding_) normal(encoding_->weight, generator);
  positions_->reset_parameters();
  // So that the sum of the 2 L branches starts with the variance of one.
  const double gain = 1.0 / std::sqrt(2.0 * static_cast<double>(options_.layers));
  for (const auto& block : *blocks_) {
    block->as<TransformerBlockImpl>()->reset_parameters({generator, gain});
  }
  norm_->reset_parameters();
  initialize_linear(reconstruction_, generator);
  if (head_) initialize_linear(head_, generator);
}

void FeatureTransformerImpl::set_table(const Tensor& table) { positions_->set_table(table); }

void FeatureTransformerImpl::set_general(std::shared_ptr<FeatureTransformerImpl> general) {
  constexpr char kAt[] = "[FeatureTransformer] general: ";
  require(options_.values == FeatureValues::general, kAt, "only of values general");
  const auto& o = general->options();
  require(o.features == options_.features && o.dim == options_.dim, kAt, "expected ",
          options_.features, " features of width ", options_.dim, ", got ", o.features,
          " of width ", o.dim);
  require(o.values == FeatureValues::linear || o.values == FeatureValues::periodic, kAt,
          "expected one of linear or periodic values");
  general_ = std::move(general);
}

Tensor FeatureTransformerImpl::embed(const Tensor& x) {
  if (codes_) return codes_->forward(x);
  if (!frequencies_.defined()) return value_->forward(x.unsqueeze(-1));
  const Tensor angles = 2.0 * std::numbers::pi * x.unsqueeze(-1) * frequencies_;
  return value_->forward(at::cat({angles.sin(), angles.cos()}, -1));
}

Tensor FeatureTransformerImpl::forward(const Tensor& x, const std::optional<Tensor>& masked,
                                       const std::optional<Tensor>& marked) {
  const auto& o = options_;
  const bool whole = o.values == FeatureValues::bins;
  TORCH_CHECK_VALUE(x.dim() == 2 && x.size(1) == o.features,
                    "[FeatureTransformer] x: expected shape [B, ", o.features, "], got ",
                    x.sizes());
  TORCH_CHECK_TYPE(whole ? x.scalar_type() == at::kLong : is_floating(x),
                   "[FeatureTransformer] x: expected ",
                   whole ? "int64 numbers of bins" : "floating numbers", ", got ", x.scalar_type());
  TORCH_CHECK_VALUE(!masked || (masked->scalar_type() == at::kBool && masked->sizes() == x.sizes()),
                    "[FeatureTransformer] masked: expected bool of the shape of x");
  Tensor tokens;
  if (o.values == FeatureValues::general) {
    TORCH_CHECK_VALUE(general_ != nullptr, "[FeatureTransformer] general: set_general() first");
    const at::NoGradGuard no_grad;
    tokens = general_->forward(x, masked).narrow(1, 1, o.features);
  } else {
    tokens = embed(x);
  }
  if (masked) tokens = at::where(masked->unsqueeze(-1), mask_, tokens);
  if (marked) tokens = tokens + marked->unsqueeze(-1).to(tokens.scalar_type()) * mark_;
  if (identity_) tokens = tokens + identity_->weight;
  if (encoding_) tokens = tokens + encoding_->weight;
  if (o.encoding == FeatureEncoding::additive) tokens = tokens + positions_->table();
  if (o.encoding == FeatureEncoding::sinusoidal) {
    const Tensor columns = at::arange(1, o.features + 1, x.options().dtype(at::kLong));
    tokens = tokens + detail::sinusoids(columns, o.dim).to(tokens.scalar_type());
  }
  Tensor hidden = at::cat({cls_.expand({x.size(0), 1, o.dim}), tokens}, 1);
  for (const auto& block : *blocks_) hidden = block->as<TransformerBlockImpl>()->forward(hidden);
  return norm_->forward(hidden);
}

Tensor FeatureTransformerImpl::reconstruct(const Tensor& hidden) {
  const Tensor values = reconstruction_->forward(hidden.narrow(1, 1, options_.features));
  return options_.values == FeatureValues::bins ? values : values.squeeze(-1);
}

Tensor FeatureTransformerImpl::reconstruction_loss(const Tensor& x, const Tensor& masked) {
  const Tensor values = reconstruct(forward(x, masked));
  const Tensor where = masked.nonzero();
  TORCH_CHECK_VALUE(where.size(0) > 0, "[FeatureTransformer] masked: expected a value to restore");
  const c10::List<std::optional<Tensor>> index({where.select(1, 0), where.select(1, 1)});
  const Tensor answers = values.index(index), truth = x.index(index);
  return options_.values == FeatureValues::bins ? at::cross_entropy_loss(answers, truth)
                                                : at::mse_loss(answers, truth);
}

Tensor FeatureTransformerImpl::aggregate(const Tensor& hidden) const {
  const Tensor features = hidden.narrow(1, 1, options_.features);
  switch (options_.aggregate) {
    case FeatureAggregate::mean:
      return features.mean(1);
    case FeatureAggregate::max:
      return features.amax(1);
    case FeatureAggregate::cls:
      break;
  }
  return hidden.select(1, 0);
}

Tensor FeatureTransformerImpl::predict(const Tensor& hidden) {
  TORCH_CHECK_VALUE(!head_.is_empty(), "[FeatureTransformer] outputs: expected a model with some");
  return head_->forward(aggregate(hidden));
}

}  // namespace nsimplex

// Attention over the features of a table, its position encodings, and the model presets.

#include <ATen/ATen.h>
#include <nsimplex/feature_transformer.h>
#include <nsimplex/rotary.h>
#include <nsimplex/separable_attention.h>

#include <array>
#include <cmath>

#include "nn/initialize.h"
#include "nn/sinusoids.h"
#include "support/error.h"
#include "support/plain_tensor.h"

namespace nsimplex {

int64_t feature_planes(const FeatureTransformerOptions& options) {
  const int64_t width = options.dim / options.heads;
  if (options.backbone != FeatureBackbone::simplicial) return width / 2;
  return (options.order + 1) / 2 * (width / (options.order + 1));
}

FeaturePositionsImpl::FeaturePositionsImpl(const FeatureTransformerOptions& options)
    : options_(options) {
  const bool rotary = options.encoding == FeatureEncoding::rotary;
  if (!rotary && options.encoding != FeatureEncoding::additive) return;
  table_ = register_buffer(
      "table", rotary ? at::zeros({options.features, options.heads, feature_planes(options)})
                      : at::zeros({options.features, options.dim}));
  if (options.learned_scale) scale_ = register_parameter("scale", at::ones({options.heads}));
}

void FeaturePositionsImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  if (scale_.defined()) scale_.fill_(1.0);
}

void FeaturePositionsImpl::set_table(const at::Tensor& table) {
  TORCH_CHECK_VALUE(table_.defined(),
                    "[FeatureTransformer] table: only of encodings rotary and additive");
  at::Tensor shaped = table;
  if (table_.dim() == 3 && table.dim() == 2) {
    shaped = table.unsqueeze(1).expand({-1, table_.size(1), -1});
  }
  TORCH_CHECK_VALUE(is_floating(table) && shaped.sizes() == table_.sizes(),
                    "[FeatureTransformer] table: expected floating numbers of shape ",
                    table_.sizes(), table_.dim() == 3 ? " or the same without heads" : "", ", got ",
                    table.scalar_type(), " of shape ", table.sizes());
  const at::NoGradGuard no_grad;
  table_.copy_(shaped);
}

at::Tensor FeaturePositionsImpl::angles() const {
  const at::Tensor angles = scale_.defined() ? table_ * scale_.unsqueeze(1) : table_;
  return at::constant_pad_nd(angles, {0, 0, 0, 0, 1, 0});
}

namespace {

struct Preset {
  const char* name;
  FeatureTransformerOptions options;
};

const std::array<Preset, 2>& presets() {
  static const std::array<Preset, 2> all{Preset{"paper-scbert",
                                                {.dim = 200,
                                                 .heads = 10,
                                                 .layers = 6,
                                                 .backbone = FeatureBackbone::performer,
                                                 .values = FeatureValues::bins,
                                                 .bins = 5}},
                                         Preset{"paper-scgpt",
                                                {.dim = 512,
                                                 .heads = 8,
                                                 .layers = 4,
                                                 .backbone = FeatureBackbone::softmax,
                                                 .values = FeatureValues::bins,
                                                 .bins = 51}}};
  return all;
}

}  // namespace

const std::vector<std::string>& feature_preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Preset& each : presets()) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

FeatureTransformerOptions feature_preset(const std::string& name) {
  for (const Preset& each : presets()) {
    if (name == each.name) return each.options;
  }
  throw InputError("[FeatureTransformer] preset: expected paper-scbert or paper-scgpt, got " +
                   name);
}

namespace {

using at::Tensor;

SimplicialAttentionOptions layer_options(const FeatureTransformerOptions& model) {
  const bool simplicial = model.backbone == FeatureBackbone::simplicial;
  SimplicialAttentionOptions options;
  options.dim = model.dim;
  options.heads = model.heads;
  options.order = simplicial ? model.order : 1;
  options.form = simplicial ? Form::determinant : Form::product;
  return options;
}

}  // namespace

FeatureAttentionImpl::FeatureAttentionImpl(const FeatureTransformerOptions& options,
                                           FeaturePositions positions, int64_t seed)
    : SimplicialAttentionImpl(layer_options(options)),
      model_(options),
      positions_(std::move(positions)),
      seed_(seed) {
  if (model_.encoding != FeatureEncoding::relative) return;
  const int64_t dim = model_.dim, heads = model_.heads;
  relative_ = register_module("relative",
                              torch::nn::Linear(torch::nn::LinearOptions(dim, dim).bias(false)));
  content_bias_ = register_parameter("content_bias", at::zeros({heads, dim / heads}));
  position_bias_ = register_parameter("position_bias", at::zeros({heads, dim / heads}));
}

void FeatureAttentionImpl::reset_parameters(const Initialization& init) {
  SimplicialAttentionImpl::reset_parameters(init);
  if (relative_.is_empty()) return;
  detail::initialize(relative_->weight, init.generator);
  const at::NoGradGuard no_grad;
  content_bias_.zero_();
  position_bias_.zero_();
}

Tensor FeatureAttentionImpl::turned(const Tensor& heads) const {
  const int64_t chunk = options().form == Form::determinant ? options().order + 1 : 2;
  return rotary(heads, {.chunk = chunk, .angles = positions_->angles()});
}

// Features of the softmax kernel, linear in the length. Only the numerator is rotated (Su et al.,
// arXiv 2104.09864, equation 19): rotated features may be negative, and their sum has no lower
// bound.
Tensor FeatureAttentionImpl::perform(const std::vector<Tensor>& parts) const {
  const FeatureOptions features{.kind = Feature::random, .seed = seed_, .orthogonal = true};
  const Tensor query = feature_map(parts[0], features), key = feature_map(parts[1], features);
  const Tensor& value = parts[2];
  if (model_.encoding != FeatureEncoding::rotary) {
    return separable_attention(query, {key}, {value}).out;
  }
  const Tensor state = turned(key).transpose(-2, -1).matmul(value);
  const Tensor weight = query.matmul(key.sum(2, true).transpose(-2, -1));
  return turned(query).matmul(state) / weight;
}

// q_m k_n + q_m r_{m-n} + u k_n + v r_{m-n}; the extra token is at column 0.
Tensor FeatureAttentionImpl::attend_relatively(const std::vector<Tensor>& parts) {
  const Tensor &query = parts[0], &key = parts[1], &value = parts[2];
  const int64_t tokens = query.size(2), width = query.size(3);
  const auto integers = query.options().dtype(at::kLong);
  const Tensor apart = detail::sinusoids(at::arange(1 - tokens, tokens, integers), model_.dim)
                           .to(query.scalar_type());
  const Tensor places = relative_->forward(apart).unflatten(1, {model_.heads, width});
  const Tensor of_difference =
      (query + position_bias_.unsqueeze(1)).matmul(places.permute({1, 2, 0}));
  const Tensor column = at::arange(tokens, integers);
  const Tensor difference = column.unsqueeze(1) - column + (tokens - 1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  const Tensor bias =
      of_difference.gather(3, difference.expand({query.size(0), model_.heads, tokens, tokens}));
  return at::scaled_dot_product_attention(query + content_bias_.unsqueeze(1), key, value,
                                          bias * scale, 0.0, false, scale);
}

Tensor FeatureAttentionImpl::forward(const Tensor& x, at::TensorList contexts,
                                     const std::optional<Tensor>& key_lengths) {
  TORCH_CHECK(contexts.empty() && !key_lengths,
              "[FeatureAttention] contexts and key_lengths: expected none");
  std::vector<Tensor> parts = heads_of(x);
  if (model_.backbone == FeatureBackbone::performer) return join_heads(perform(parts));
  if (model_.encoding == FeatureEncoding::relative) return join_heads(attend_relatively(parts));
  const int64_t order = options().order;
  for (int64_t p = 0; model_.encoding == FeatureEncoding::rotary && p <= order; ++p) {
    parts[p] = turned(parts[p]);
  }
  const at::TensorList all(parts);
  return join_heads(
      attention(all[0], all.slice(1, order), all.slice(1 + order), attention_options()).out);
}

}  // namespace nsimplex

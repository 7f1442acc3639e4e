// The language model: embedding, blocks, output projection, caches and losses.

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <nsimplex/language_model.h>

#include <algorithm>
#include <cmath>

#include "nn/attention_layer.h"
#include "nn/initialize.h"
#include "nn/language_options.h"
#include "support/require.h"

namespace nsimplex {

namespace {

constexpr double kEmbeddingDeviation = 0.02;

// The tuples of the simplicial layers; none: all in the window.
Select selection(const LanguageModelOptions& o) {
  const IndexerOptions indexer{.heads = o.heads,
                               .source = o.indexer,
                               .scores = o.indexer_scores,
                               .rotary = o.indexer == IndexSource::light,
                               .rotary_base = o.rotary_base};
  const TopK best{{o.topk}, indexer, o.indexer_loss};
  switch (o.sparse) {
    case Sparsity::window:
      return {};
    case Sparsity::topk:
      return best;
    case Sparsity::path:
      return Path{o.topk, indexer, o.indexer_loss};
    case Sparsity::linear:
      return Linear{};
    default:
      break;
  }
  Union all;
  if (has_part(o.sparse, "window")) all.parts.emplace_back(o.window.front());
  if (has_part(o.sparse, "sinks")) all.parts.emplace_back(Sinks{o.sinks});
  if (has_part(o.sparse, "topk")) all.parts.emplace_back(best);
  return all;
}

// Sets the option of a layer that has the name of the model's option, if there is one.
#define NSIMPLEX_PASS(type, name, ...)                                    \
  [](auto& to, const auto& from) {                                        \
    if constexpr (requires { to.name = from.name; }) to.name = from.name; \
  }(layer, o);

// The attention of one block.
SimplicialAttentionOptions layer_options(const LanguageModelOptions& o, bool simplicial) {
  SimplicialAttentionOptions layer{.dim = o.dim,
                                   .heads = o.heads,
                                   .kv_heads = o.kv_heads,
                                   .head_dim = o.head_dim,
                                   .order = 1,
                                   .norm = o.norm,
                                   .causal = true,
                                   .rotary = true,
                                   .rotary_base = o.rotary_base,
                                   .bias = o.bias};
  if (!simplicial) return layer;
  NSIMPLEX_LANGUAGE_MODEL_OPTIONS(NSIMPLEX_PASS)
  const bool first = o.orders.empty() ? o.order == 1 : std::ranges::count(o.orders, 1) > 0;
  layer.rotary = o.rotary || (first && (o.orders.empty() || o.form == Form::product));
  for (int64_t axis = 1; o.augment && axis < detail::most_axes(o); ++axis) {
    layer.augment.push_back(axis);
  }
  layer.select = selection(o);
  if (o.sparse != Sparsity::window) layer.window.clear();
  return layer;
}
#undef NSIMPLEX_PASS

// What a layer refuses is an option of the model, which is all that a user named.
SimplicialAttention make_attention(const LanguageModelOptions& o, bool simplicial) {
  try {
    return SimplicialAttention(layer_options(o, simplicial));
  } catch (const InputError& error) {
    const std::string message = error.what();
    throw InputError("[LanguageModel" +
                     message.substr(std::min(message.find("] "), message.size())));
  }
}

}  // namespace

LanguageModelImpl::LanguageModelImpl(const LanguageModelOptions& options,
                                     const std::optional<at::Generator>& generator)
    : options_(options) {
  detail::check_model(options_);
  const auto& o = options_;
  blocks_ = torch::nn::ModuleList();
  const FeedForwardOptions mlp{.hidden = std::llround(o.mlp_ratio * static_cast<double>(o.dim)),
                               .activation = o.mlp};
  for (int64_t layer = 1; layer <= o.layers; ++layer) {
    const bool simplicial = o.every > 0 && layer % o.every == 0;
    SimplicialAttention attention = make_attention(o, simplicial);
    if (attention->has_indexer() && o.indexer == IndexSource::reuse) {
      require(layer > 1,
              "[LanguageModel] indexer: reuse scores the pairs of the layer before, and the first "
              "layer has none; use light, or every of at least 2");
      attention->set_source(blocks_->at<TransformerBlockImpl>(layer - 2).attention().ptr());
    }
    blocks_->push_back(TransformerBlock(std::move(attention), mlp));
  }
  embedding_ = register_module("embedding", torch::nn::Embedding(o.vocabulary, o.dim));
  register_module("blocks", blocks_);
  norm_ = register_module("norm", RMSNorm(o.dim));
  if (!o.tied) {
    head_ = register_module(
        "head", torch::nn::Linear(torch::nn::LinearOptions(o.dim, o.vocabulary).bias(false)));
  }
  reset_parameters(generator);
}

void LanguageModelImpl::reset_parameters(const std::optional<at::Generator>& generator) {
  const at::NoGradGuard no_grad;
  embedding_->weight.normal_(0.0, kEmbeddingDeviation, generator);
  const double branches = 2.0 * static_cast<double>(options_.layers);
  const Initialization init{generator, 1.0 / std::sqrt(branches)};
  for (size_t i = 0; i < blocks_->size(); ++i) {
    blocks_->at<TransformerBlockImpl>(i).reset_parameters(init);
  }
  norm_->reset_parameters();
  if (head_) head_->weight.normal_(0.0, kEmbeddingDeviation, generator);
}

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens) { return run(tokens, nullptr); }

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens, LayerCaches& caches) {
  TORCH_CHECK(caches.size() == options_.layers, "[LanguageModel] caches: expected one for each of ",
              options_.layers, " layers, got ", caches.size());
  return run(tokens, &caches);
}

LayerCaches LanguageModelImpl::make_cache(std::optional<int64_t> unbounded) const {
  std::vector<std::shared_ptr<LayerCache>> layers;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const auto& block = blocks_->at<TransformerBlockImpl>(i);
    layers.push_back(block.make_cache(unbounded.value_or(options_.context)));
  }
  return LayerCaches(std::move(layers));
}

at::Tensor LanguageModelImpl::embed(const at::Tensor& tokens) {
  TORCH_CHECK(tokens.dim() == 2 && at::isIntegralType(tokens.scalar_type(), /*includeBool=*/false),
              "[LanguageModel] tokens: expected integers of shape [B, T], got ",
              tokens.scalar_type(), " of shape ", tokens.sizes());
  return embedding_->forward(tokens);
}

std::vector<at::Tensor> LanguageModelImpl::hidden_states(const at::Tensor& tokens) {
  std::vector<at::Tensor> states{embed(tokens)};
  for (size_t i = 0; i < blocks_->size(); ++i) {
    states.push_back(blocks_->at<TransformerBlockImpl>(i).forward(states.back()));
  }
  return states;
}

TransformerBlock LanguageModelImpl::block(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < options_.layers, "[LanguageModel] block: expected 0 to ",
              options_.layers - 1, ", got ", index);
  return TransformerBlock(blocks_->ptr<TransformerBlockImpl>(static_cast<size_t>(index)));
}

at::Tensor LanguageModelImpl::run(const at::Tensor& tokens, LayerCaches* caches) {
  at::Tensor x = embed(tokens);
  for (size_t i = 0; i < blocks_->size(); ++i) {
    auto& block = blocks_->at<TransformerBlockImpl>(i);
    x = caches ? block.forward(x, (*caches)[static_cast<int64_t>(i)]) : block.forward(x);
  }
  return at::linear(norm_->forward(x), head_ ? head_->weight : embedding_->weight);
}

at::Tensor LanguageModelImpl::loss(const at::Tensor& tokens, const at::Tensor& targets) {
  TORCH_CHECK(targets.sizes() == tokens.sizes(), "[LanguageModel] targets: expected shape ",
              tokens.sizes(), ", got ", targets.sizes());
  at::Tensor logits = forward(tokens).flatten(0, 1);
  if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
  at::Tensor loss = at::cross_entropy_loss(logits, targets.flatten());
  if (!at::GradMode::is_enabled()) return loss;
  const at::Tensor auxiliary = auxiliary_loss();
  return auxiliary.defined() ? loss + auxiliary : loss;
}

std::vector<std::shared_ptr<SimplicialAttentionImpl>> LanguageModelImpl::choosing_layers() const {
  std::vector<std::shared_ptr<SimplicialAttentionImpl>> layers;
  for (size_t i = 0; i < blocks_->size(); ++i) {
    const auto attention = blocks_->at<TransformerBlockImpl>(i).attention().ptr();
    if (attention && detail::chooses_keys(attention->options().select)) layers.push_back(attention);
  }
  return layers;
}

at::Tensor LanguageModelImpl::auxiliary_loss() const {
  at::Tensor sum;
  for (const auto& layer : choosing_layers()) {
    const at::Tensor& loss = layer->auxiliary_loss();
    if (loss.defined()) sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

void LanguageModelImpl::set_warm_up(bool warms_up) {
  for (const auto& layer : choosing_layers()) {
    if (layer->has_indexer()) layer->set_warm_up(warms_up);
  }
}

std::vector<double> LanguageModelImpl::retained_mass(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  const auto layers = choosing_layers();
  for (const auto& layer : layers) layer->measure_retained_mass(true);
  forward(tokens);
  std::vector<double> masses;
  for (const auto& layer : layers) {
    layer->measure_retained_mass(false);
    masses.push_back(layer->retained_mass().item<double>());
  }
  return masses;
}

}  // namespace nsimplex

// Two layers that select: expert choice selects tokens, and the indexer selects keys.

#include <ATen/ATen.h>
#include <ATen/ops/softplus.h>
#include <nsimplex/rotary.h>
#include <nsimplex/sparse_layers.h>

#include <algorithm>
#include <limits>

#include "nn/initialize.h"
#include "support/require.h"

namespace nsimplex {
namespace {

using at::Tensor;

constexpr const char* kChoice = "[ExpertChoice] ";

RouterOptions checked(const RouterOptions& o) {
  const char* at = kChoice;
  if (const auto* count = std::get_if<int64_t>(&o.tokens)) {
    require(*count >= 1, at, "tokens: expected at least 1, got ", *count);
  } else {
    const double share = std::get<double>(o.tokens);
    require(share > 0 && share <= 1, at, "tokens: expected a share in (0, 1], got ", share);
  }
  return o;
}

Expert checked(Expert expert, bool allow_leak) {
  require(expert.module != nullptr, kChoice, "attention: expected a layer or block, got none");
  require(expert.change != nullptr, kChoice, "attention: expected a function `change`, got none");
  require(expert.dim > 0, kChoice, "dim: expected a positive width, got ", expert.dim);
  for (const auto& each : expert.module->modules()) {
    const auto layer = std::dynamic_pointer_cast<SimplicialAttentionImpl>(each);
    if (!layer) continue;
    require(layer->options().context_dims.empty(), kChoice,
            "attention: expected a layer without contexts");
    require(allow_leak || !layer->options().causal, kChoice,
            "attention: choosing among all tokens leaks the future into a causal layer; set "
            "allow_leak to use it all the same");
  }
  return expert;
}

Expert expert_of(SimplicialAttention layer) {
  require(!layer.is_empty(), kChoice, "attention: expected a layer or block, got none");
  return {layer.ptr(), layer->options().dim,
          [layer](const Tensor& x, const SelectedTokens& tokens) mutable {
            return layer->forward_selected(x, tokens);
          },
          [layer](const Initialization& init) mutable { layer->reset_parameters(init); }};
}

Expert expert_of(TransformerBlock block) {
  require(!block.is_empty(), kChoice, "attention: expected a layer or block, got none");
  return {block.ptr(), block->dim(),
          [block](const Tensor& x, const SelectedTokens& tokens) mutable {
            return block->change_selected(x, tokens);
          },
          [block](const Initialization& init) mutable { block->reset_parameters(init); }};
}

void check_lengths(const Tensor& lengths, const Tensor& x) {
  TORCH_CHECK_VALUE(at::isIntegralType(lengths.scalar_type(), /*includeBool=*/false) &&
                        lengths.sizes().equals({x.size(0)}),
                    "[ExpertChoice] lengths: expected integers of shape [", x.size(0), "], got ",
                    lengths.scalar_type(), " of shape ", lengths.sizes());
  if (lengths.numel() == 0) return;
  const int64_t low = lengths.min().item<int64_t>(), high = lengths.max().item<int64_t>();
  TORCH_CHECK_VALUE(low >= 0 && high <= x.size(1), "[ExpertChoice] lengths: expected 0 to ",
                    x.size(1), ", the tokens of x, got ", low, " to ", high);
}

void check_adjacency(const Tensor& adjacency, const Tensor& x) {
  const int64_t batch = x.size(0), length = x.size(1);
  TORCH_CHECK_VALUE(
      adjacency.scalar_type() == at::kBool && (adjacency.sizes().equals({length, length}) ||
                                               adjacency.sizes().equals({batch, length, length})),
      "[ExpertChoice] adjacency: expected bool of shape [", length, ", ", length, "] or [", batch,
      ", ", length, ", ", length, "], got ", adjacency.scalar_type(), " of shape ",
      adjacency.sizes());
}

// ceil(share * real), except that a product within rounding of a whole number counts as that
// number: 0.07 of 100 tokens is 7, not 8.
Tensor rounded_up(double share, const Tensor& real) {
  return (real.to(at::kDouble) * share * (1 - 1e-12)).ceil().to(at::kLong);
}

// bool [B, length]: true at positions at and beyond each entry's count.
Tensor beyond(const Tensor& counts, int64_t length) {
  return at::arange(length, counts.options()) >= counts.unsqueeze(1);
}

}  // namespace

struct ExpertChoiceImpl::Chosen {
  Tensor positions;  // int64 [B, K], ascending; 0 after the last one
  Tensor counts;     // int64 [B]
};

ExpertChoiceImpl::ExpertChoiceImpl(const ExpertChoiceOptions& options)
    : ExpertChoiceImpl(SimplicialAttention(options.attention),
                       {options.tokens, options.sigmoid, options.allow_leak}) {}

ExpertChoiceImpl::ExpertChoiceImpl(SimplicialAttention layer, const RouterOptions& router)
    : ExpertChoiceImpl(expert_of(layer), router) {
  attention_ = std::move(layer);
}

ExpertChoiceImpl::ExpertChoiceImpl(TransformerBlock block, const RouterOptions& router)
    : ExpertChoiceImpl(expert_of(block), router) {
  attention_ = block->attention();
}

ExpertChoiceImpl::ExpertChoiceImpl(Expert expert, const RouterOptions& router)
    : router_options_(checked(router)), expert_(checked(std::move(expert), router.allow_leak)) {
  router_ = register_module(
      "router", torch::nn::Linear(torch::nn::LinearOptions(expert_.dim, 1).bias(false)));
  const std::vector<Tensor> weights = expert_.module->parameters();
  if (!weights.empty()) router_->to(weights[0].device(), weights[0].scalar_type());
  register_module("attention", expert_.module);
  reset_router();
}

void ExpertChoiceImpl::reset_router(const std::optional<at::Generator>& generator) {
  detail::initialize(router_->weight, generator);
}

void ExpertChoiceImpl::reset_parameters(const Initialization& init) {
  reset_router(init.generator);
  expert_.reset(init);
}

std::shared_ptr<LayerCache> ExpertChoiceImpl::make_cache() const {
  throw InputError(
      "[ExpertChoice] cache: the router compares all tokens, and a cache holds only the earlier "
      "ones");
}

ExpertChoiceImpl::Chosen ExpertChoiceImpl::choose(const Tensor& scores,
                                                  const std::optional<Tensor>& lengths) const {
  const int64_t batch = scores.size(0), length = scores.size(1);
  const Tensor real =
      lengths ? *lengths : at::full({batch}, length, scores.options().dtype(at::kLong));
  int64_t most;
  Chosen chosen;
  if (const auto* count = std::get_if<int64_t>(&router_options_.tokens)) {
    most = std::min(*count, length);
    chosen.counts = real.clamp_max(*count);
  } else {
    const double share = std::get<double>(router_options_.tokens);
    most = rounded_up(share, at::scalar_tensor(length, at::kDouble)).item<int64_t>();
    chosen.counts = rounded_up(share, real);
  }
  const Tensor masked =
      scores.masked_fill(beyond(real, length), -std::numeric_limits<double>::infinity());
  const Tensor best =
      std::get<1>(masked.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true)).narrow(1, 0, most);
  const Tensor missing = beyond(chosen.counts, most);
  // Sorted by position, with the missing ones last.
  chosen.positions =
      std::get<0>(best.masked_fill(missing, length).sort(-1)).masked_fill(missing, 0);
  return chosen;
}

Tensor ExpertChoiceImpl::forward(const Tensor& x, const std::optional<Tensor>& lengths,
                                 const std::optional<Tensor>& adjacency) {
  // A sum like any residual: with two dtypes under autocast it has the wider one.
  return x + change(x, lengths, adjacency);
}

Tensor ExpertChoiceImpl::change(const Tensor& x, const std::optional<Tensor>& lengths,
                                const std::optional<Tensor>& adjacency,
                                const std::optional<Tensor>& positions) {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == expert_.dim, "[ExpertChoice] x: expected shape [B, T, ",
              expert_.dim, "], got ", x.sizes());
  TORCH_CHECK_VALUE(!positions || (positions->scalar_type() == at::kLong &&
                                   positions->sizes().equals({x.size(0), x.size(1)})),
                    "[ExpertChoice] positions: expected int64 of shape [", x.size(0), ", ",
                    x.size(1), "], got ", positions->scalar_type(), " of shape ",
                    positions->sizes());
  if (lengths) check_lengths(*lengths, x);
  if (adjacency) check_adjacency(*adjacency, x);
  const int64_t batch = x.size(0), length = x.size(1), channels = x.size(2);
  // Padding may hold anything. Only its pass-through reads it.
  const Tensor real = lengths ? x.masked_fill(beyond(*lengths, length).unsqueeze(-1), 0) : x;
  const Tensor scores = router_->forward(real).squeeze(-1);
  const Chosen chosen = choose(scores.detach(), lengths);
  const int64_t most = chosen.positions.size(1);
  const Tensor missing = beyond(chosen.counts, most);
  const Tensor rows = chosen.positions.unsqueeze(-1).expand({-1, -1, channels});

  SelectedTokens tokens{chosen.positions, chosen.counts, std::nullopt};
  if (adjacency) {
    tokens.adjacency = adjacency->expand({batch, -1, -1})
                           .gather(1, chosen.positions.unsqueeze(-1).expand({-1, -1, length}))
                           .gather(2, chosen.positions.unsqueeze(1).expand({-1, most, -1}));
  }
  const Tensor input = real.gather(1, rows).masked_fill(missing.unsqueeze(-1), 0);
  if (positions) tokens.positions = positions->gather(1, chosen.positions);
  const Tensor out = expert_.change(input, tokens);
  const Tensor score = scores.gather(1, chosen.positions);
  const Tensor weight = (router_options_.sigmoid ? score.sigmoid() : score).masked_fill(missing, 0);
  const Tensor update = out * weight.unsqueeze(-1);
  return at::zeros(x.sizes(), update.options()).scatter_add(1, rows, update);
}

namespace {

IndexerOptions checked(const IndexerOptions& o) {
  const char* at = "[Indexer] ";
  require(o.dim > 0, at, "dim: expected a positive width, got ", o.dim);
  require(o.heads > 0, at, "heads: expected at least 1, got ", o.heads);
  require(o.index_dim > 0, at, "index_dim: expected a positive width, got ", o.index_dim);
  require(!o.rotary || (o.source == IndexSource::light && o.index_dim % 2 == 0), at,
          "rotary: expected source light and an even index_dim, got ", o.index_dim);
  return o;
}

torch::nn::Linear linear(int64_t from, int64_t to) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
}

}  // namespace

IndexerImpl::IndexerImpl(const IndexerOptions& options) : options_(checked(options)) {
  const auto& o = options_;
  if (o.source == IndexSource::light) {
    query_ = register_module("query", linear(o.dim, o.heads * o.index_dim));
    key_ = register_module("key", linear(o.dim, o.index_dim));
    options_.learned = true;
  }
  if (o.learned) weight_ = register_module("weight", linear(o.dim, o.heads));
  reset_parameters();
}

void IndexerImpl::reset_parameters(const Initialization& init) {
  for (at::Tensor& weight : parameters()) detail::initialize(weight, init.generator);
}

IndexParts IndexerImpl::project(const at::Tensor& x, const std::optional<ReusedPairs>& source,
                                int64_t first_position,
                                const std::optional<at::Tensor>& positions) {
  const auto& o = options_;
  TORCH_CHECK(x.dim() == 3 && x.size(2) == o.dim, "[Indexer] x: expected shape [B, T, ", o.dim,
              "], got ", x.sizes());
  IndexParts parts;
  if (weight_) {
    const at::Tensor weights = weight_->forward(x).transpose(1, 2);
    parts.weights = o.scores == IndexScores::softmax ? at::softplus(weights) : weights;
  }
  if (o.source == IndexSource::reuse) {
    TORCH_CHECK(source,
                "[Indexer] source: expected the tensors of the attention layer before; a first "
                "layer has none and takes source light");
    TORCH_CHECK(source->query.dim() == 4 && source->query.size(1) == o.heads,
                "[Indexer] source.query: expected ", o.heads, " heads [B, H, T, D], got ",
                source->query.sizes());
    parts.query = source->query.detach();
    parts.key = source->key.detach();
    if (source->lse && o.scores == IndexScores::softmax) parts.lse = source->lse->detach();
    return parts;
  }
  parts.query = query_->forward(x).unflatten(-1, {o.heads, o.index_dim}).transpose(1, 2);
  parts.key = key_->forward(x).unsqueeze(1);
  if (o.rotary) {
    const RotaryOptions turn{
        .base = o.rotary_base, .offset = first_position, .positions = positions};
    parts.query = rotary(parts.query, turn);
    parts.key = rotary(parts.key, turn);
  }
  return parts;
}

TopkKeys IndexerImpl::forward(const at::Tensor& x, int64_t k, TopkOptions options,
                              const std::optional<ReusedPairs>& source) {
  const at::NoGradGuard no_grad;
  IndexParts parts = project(x, source);
  options.weights = std::move(parts.weights);
  options.lse = std::move(parts.lse);
  options.scores = options_.scores;
  return topk_keys(parts.query, parts.key, k, options);
}

at::Tensor IndexerImpl::loss(const at::Tensor& x, const at::Tensor& query, at::TensorList keys,
                             IndexerLossOptions options, const std::optional<ReusedPairs>& source) {
  IndexParts parts = project(x.detach(), source);
  options.weights = std::move(parts.weights);
  options.lse = std::move(parts.lse);
  options.scores = options_.scores;
  return indexer_loss(parts.query, parts.key, query, keys, options);
}

}  // namespace nsimplex

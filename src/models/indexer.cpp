#include <ATen/ops/softplus.h>
#include <nsimplex/rotary.h>
#include <nsimplex/routing_layers.h>

#include "models/initialize.h"
#include "models/options_check.h"

namespace nsimplex {
namespace {

using detail::require;

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
                                int64_t first_position) {
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
    const RotaryOptions turn{.base = o.rotary_base, .offset = first_position};
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

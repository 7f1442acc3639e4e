#include <nsimplex/layers.h>

#include "models/options_check.h"

namespace nsimplex {
namespace {

using at::Tensor;
using detail::require;

SimplicialAttentionOptions checked_separable(const SimplicialAttentionOptions& o) {
  constexpr char kAt[] = "[SeparableAttention] ";
  require(o.form == Form::product, kAt, "form: expected product, the one that separates");
  require(o.reduce == Reduce::product, kAt, "reduce: expected product, the one that separates");
  require(o.context_dims.empty(), kAt, "context_dims: expected none, got ", o.context_dims.size());
  return o;
}

}  // namespace

SeparableAttentionImpl::SeparableAttentionImpl(const SimplicialAttentionOptions& options,
                                               const FeatureOptions& features)
    : SimplicialAttentionImpl(checked_separable(options)), features_(features) {}

// Features of q and the keys, then the values.
std::vector<Tensor> SeparableAttentionImpl::features_of(const Tensor& x, int64_t first_position) {
  std::vector<Tensor> parts = heads_of(x, first_position);
  leave_pairs(parts);
  for (int64_t p = 0; p <= options().order; ++p) parts[p] = feature_map(parts[p], features_);
  return parts;
}

Tensor SeparableAttentionImpl::forward(const Tensor& x, at::TensorList contexts,
                                       const std::optional<Tensor>& key_lengths) {
  TORCH_CHECK(contexts.empty() && !key_lengths,
              "[SeparableAttention] contexts and key_lengths: expected none");
  const int64_t order = options().order;
  const std::vector<Tensor> parts = features_of(x);
  const at::TensorList all(parts);
  const SeparableOptions separable{.causal = options().causal, .window = options().window};
  return join_heads(
      separable_attention(all[0], all.slice(1, order), all.slice(1 + order), separable).out);
}

Tensor SeparableAttentionImpl::forward(const Tensor& x, LayerCache& cache) {
  require_cacheable();
  auto* const held = dynamic_cast<SeparableCache*>(&cache);
  TORCH_CHECK(held != nullptr, "[SeparableAttention] cache: expected a separable cache");
  const int64_t order = options().order;
  const std::vector<Tensor> parts = features_of(x, cache.position());
  const at::TensorList all(parts);
  return join_heads(held->attend(all[0], all.slice(1, order), all.slice(1 + order)).out);
}

std::shared_ptr<LayerCache> SeparableAttentionImpl::make_cache(int64_t /*unbounded*/) const {
  return std::make_shared<SeparableCache>(cache_window(-1));
}

}  // namespace nsimplex

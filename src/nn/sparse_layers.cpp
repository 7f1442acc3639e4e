#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>
#include <nsimplex/cache.h>
#include <nsimplex/layers.h>
#include <nsimplex/sparse_layers.h>

#include "support/require.h"

namespace nsimplex {
namespace {

using at::Tensor;

void refuse_masks(const char* at, const AttentionMasks& masks) {
  require(masks.key_masks.empty(), at, "key_masks: expected none");
  require(!masks.cu_seqlens, at, "cu_seqlens: expected none");
  require(!masks.mask, at, "mask: expected none");
}

SimplicialAttentionOptions checked(const SimplicialAttentionOptions& o) {
  constexpr char kAt[] = "[SparseAttention] ";
  require(o.context_dims.empty(), kAt, "context_dims: expected none, got ", o.context_dims.size());
  require(o.window.empty(), kAt, "window: expected none beside chosen keys, got ", o.window.size());
  require(o.normalizer == Normalizer::softmax || o.normalizer == Normalizer::softmax_sink, kAt,
          "normalizer: expected softmax or softmax_sink beside chosen keys");
  return o;
}

TupleReduce tuple_reduce(Reduce reduce) {
  switch (reduce) {
    case Reduce::product:
      return TupleReduce::product;
    case Reduce::sum:
      return TupleReduce::sum;
    case Reduce::mean:
      return TupleReduce::mean;
  }
  return TupleReduce::product;
}

}  // namespace

SparseAttentionImpl::SparseAttentionImpl(const SimplicialAttentionOptions& options,
                                         const SelectionOptions& selection)
    : SimplicialAttentionImpl(checked(options)), selection_(selection) {
  constexpr char kAt[] = "[SparseAttention] ";
  SimplicialAttentionOptions others = this->options();
  others.normalizer = Normalizer::softmax;
  require_plain(kAt, others);
  require(selection.pattern != TuplePattern::list, kAt, "pattern: expected product or path");
  require(selection.keys >= 1, kAt, "keys: expected at least 1, got ", selection.keys);
  require(selection.loss_weight >= 0, kAt, "loss_weight: expected 0 or more, got ",
          selection.loss_weight);
  IndexerOptions indexer = selection.indexer;
  if (indexer.dim == 0) indexer.dim = this->options().dim;
  if (indexer.source == IndexSource::reuse) indexer.learned = selection.loss_weight > 0;
  indexer_ = register_module("indexer", Indexer(indexer));
}

void SparseAttentionImpl::reset_parameters(const Initialization& init) {
  SimplicialAttentionImpl::reset_parameters(init);
  indexer_->reset_parameters(init);
}

void SparseAttentionImpl::set_source(const std::shared_ptr<SimplicialAttentionImpl>& source) {
  source->keep_pairs();
  source_ = source;
}

IndexParts SparseAttentionImpl::index_of(const Tensor& x, int64_t first_position) {
  std::optional<ReusedPairs> pairs;
  if (const auto source = source_.lock()) pairs = source->pairs();
  return indexer_->project(x.detach(), pairs, first_position);
}

// The chosen keys of the last queries: [B, t, k].
Tensor SparseAttentionImpl::choose(const IndexParts& index) const {
  const at::NoGradGuard no_grad;
  const TopkOptions topk{.weights = index.weights,
                         .scores = selection_.indexer.scores,
                         .causal = options().causal,
                         .lse = index.lse};
  return topk_keys(index.query, index.key, selection_.keys, topk).indices;
}

// The indexer's loss, over all admissible keys if none are chosen yet.
Tensor SparseAttentionImpl::alignment_loss(const IndexParts& index, const Tensor& query,
                                           at::TensorList keys,
                                           const std::optional<Tensor>& chosen) const {
  if (!at::GradMode::is_enabled() || selection_.loss_weight <= 0) return {};
  const IndexerLossOptions loss{.weights = index.weights,
                                .scores = selection_.indexer.scores,
                                .causal = options().causal,
                                .lse = index.lse,
                                .indices = chosen,
                                .path = chosen && selection_.pattern == TuplePattern::path,
                                .form = options().form,
                                .attention_scale = scale()};
  return selection_.loss_weight * indexer_loss(index.query, index.key, query, keys, loss);
}

AttentionOutput SparseAttentionImpl::attend(const Tensor& query, at::TensorList keys,
                                            at::TensorList values, const Tensor& chosen) const {
  const SparseAttentionOptions sparse{.pattern = selection_.pattern,
                                      .form = options().form,
                                      .reduce = tuple_reduce(options().reduce),
                                      .scale = scale()};
  AttentionOutput attended =
      sparse_attention(query, keys, values, chosen.unsqueeze(1), std::nullopt, sparse);
  // A sink is a tuple of its own in the denominator, with value 0.
  if (const auto sink = attention_options().sink) {
    const Tensor share = at::sigmoid(attended.lse - sink->unsqueeze(-1));
    attended.out = attended.out * share.unsqueeze(-1).to(attended.out.scalar_type());
  }
  return attended;
}

AttentionOutput SparseAttentionImpl::attend_to_all(const Tensor& query, at::TensorList keys,
                                                   at::TensorList values, bool with_sink) const {
  AttentionOptions dense = attention_options();
  if (!with_sink) {
    dense.normalizer = Normalizer::softmax;
    dense.sink.reset();
  }
  dense.causal = options().causal;
  return attention(query, keys, values, dense);
}

Tensor SparseAttentionImpl::forward(const Tensor& x, at::TensorList contexts,
                                    const std::optional<Tensor>& key_lengths) {
  TORCH_CHECK(contexts.empty() && !key_lengths,
              "[SparseAttention] contexts and key_lengths: expected none");
  const int64_t order = options().order;
  const std::vector<Tensor> parts = heads_of(x);
  leave_pairs(parts);
  const at::TensorList all(parts), keys = all.slice(1, order), values = all.slice(1 + order);
  const IndexParts index = index_of(x, 0);
  if (warms_up_) {
    auxiliary_loss_ = alignment_loss(index, all[0], keys, std::nullopt);
    return join_heads(attend_to_all(all[0], keys, values, true).out);
  }
  const Tensor chosen = choose(index);
  auxiliary_loss_ = alignment_loss(index, all[0], keys, chosen);
  const AttentionOutput attended = attend(all[0], keys, values, chosen);
  if (measures_mass_) {
    const at::NoGradGuard no_grad;
    const Tensor dense = attend_to_all(all[0], keys, values, false).lse;
    retained_mass_ = nsimplex::retained_mass(attended.lse, dense);
  }
  return join_heads(attended.out);
}

Tensor SparseAttentionImpl::forward_masked(const Tensor& x, const AttentionMasks& masks,
                                           at::TensorList contexts) {
  refuse_masks("[SparseAttention] ", masks);
  return forward(x, contexts, masks.key_lengths);
}

Tensor SparseAttentionImpl::forward(const Tensor& x, LayerCache& cache) {
  require_cacheable();
  auto* const held = dynamic_cast<IndexedCache*>(&cache);
  TORCH_CHECK(held != nullptr, "[SparseAttention] cache: expected an indexed cache");
  const int64_t order = options().order, first = cache.position();
  const std::vector<Tensor> parts = heads_of(x, first);
  leave_pairs(parts);
  const at::TensorList all(parts);
  IndexParts index = index_of(x, first);
  const CachedKeys cached = held->extend(all[0], all.slice(1, order), all.slice(1 + order));
  index.key = held->append_index(index.key);
  index.lse.reset();  // the source's lse may be over fewer keys than are scored here
  Tensor chosen = choose(index);
  if (selection_.pattern == TuplePattern::path) chosen = held->append_table(chosen);
  return join_heads(attend(all[0], cached.keys, cached.values, chosen).out);
}

std::shared_ptr<LayerCache> SparseAttentionImpl::make_cache(int64_t /*unbounded*/) const {
  require_cacheable();
  return std::make_shared<IndexedCache>(options().order);
}

namespace {

using at::Tensor;

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
    : SimplicialAttentionImpl(checked_separable(options)), features_(features) {
  require_plain("[SeparableAttention] ", this->options());
}

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

Tensor SeparableAttentionImpl::forward_masked(const Tensor& x, const AttentionMasks& masks,
                                              at::TensorList contexts) {
  refuse_masks("[SeparableAttention] ", masks);
  return forward(x, contexts, masks.key_lengths);
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

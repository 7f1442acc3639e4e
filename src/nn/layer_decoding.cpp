// Continues attention layers from caches.

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <nsimplex/sparse_layers.h>

#include "nn/attention_layer.h"
#include "support/require.h"

namespace nsimplex {
namespace {

// The caches of the layers of a layer whose heads have different orders, which advance together.
class GroupCache : public LayerCache {
 public:
  explicit GroupCache(std::vector<std::shared_ptr<LayerCache>> caches)
      : caches_(std::move(caches)) {
    for (const auto& cache : caches_) {
      window_.insert(window_.end(), cache->window().begin(), cache->window().end());
    }
  }

  std::vector<std::shared_ptr<LayerCache>>& caches() { return caches_; }

  const std::vector<int64_t>& window() const override { return window_; }
  int64_t position() const override { return caches_.front()->position(); }
  int64_t bytes() const override {
    int64_t sum = 0;
    for (const auto& cache : caches_) sum += cache->bytes();
    return sum;
  }
  void reset() override {
    for (const auto& cache : caches_) cache->reset();
  }
  void select(const at::Tensor& entries) override {
    for (const auto& cache : caches_) cache->select(entries);
  }

  CacheState state() const override {
    CacheState all{{"position", at::scalar_tensor(position(), at::kLong)}};
    for (size_t i = 0; i < caches_.size(); ++i) {
      for (const auto& [name, tensor] : caches_[i]->state()) all[prefix(i) + name] = tensor;
    }
    return all;
  }

  void load_state(const CacheState& state) override {
    const std::shared_ptr<LayerCache> loaded = fresh();
    auto& others = static_cast<GroupCache&>(*loaded);
    for (size_t i = 0; i < caches_.size(); ++i) {
      CacheState own;
      for (const auto& [name, tensor] : state) {
        if (name.starts_with(prefix(i))) own[name.substr(prefix(i).size())] = tensor;
      }
      others.caches_[i]->load_state(own);
    }
    take(*loaded);
  }

  std::shared_ptr<LayerCache> fresh() const override {
    std::vector<std::shared_ptr<LayerCache>> empty;
    for (const auto& cache : caches_) empty.push_back(cache->fresh());
    return std::make_shared<GroupCache>(std::move(empty));
  }

  void take(LayerCache& other) override {
    auto& others = dynamic_cast<GroupCache&>(other);
    for (size_t i = 0; i < caches_.size(); ++i) caches_[i]->take(*others.caches_[i]);
  }

 private:
  static std::string prefix(size_t group) { return c10::str("groups.", group, "."); }

  std::vector<std::shared_ptr<LayerCache>> caches_;
  std::vector<int64_t> window_;
};

// Whether attention needs the keys of all tokens in their order, which a ring does not hold.
bool counts_places(const SimplicialAttentionOptions& options) {
  return options.face || options.distinct != Distinct::none;
}

std::vector<at::Tensor> heads_and_cached(const at::Tensor& query, const CachedKeys& cached) {
  std::vector<at::Tensor> parts{query};
  parts.insert(parts.end(), cached.keys.begin(), cached.keys.end());
  parts.insert(parts.end(), cached.values.begin(), cached.values.end());
  return parts;
}

}  // namespace

at::Tensor SimplicialAttentionImpl::forward(const at::Tensor& x, LayerCache& cache) {
  const auto& o = options_;
  if (groups_) {
    auto* const held = dynamic_cast<GroupCache*>(&cache);
    TORCH_CHECK(held != nullptr && held->caches().size() == groups_->size(), at_,
                "cache: expected one of this layer's make_cache()");
    at::Tensor sum;
    for (size_t i = 0; i < groups_->size(); ++i) {
      const at::Tensor out = groups_->at<SimplicialAttentionImpl>(i).forward(x, *held->caches()[i]);
      sum = sum.defined() ? sum + out : out;
    }
    gather_groups();
    return sum;
  }
  require_cacheable();
  require(o.dropout == 0 || !is_training(), at_,
          "dropout: expected evaluation mode with a cache; call eval()");
  if (detail::chooses_keys(o.select)) return continue_chosen(x, cache);
  const std::vector<at::Tensor> parts = heads_of(x, cache.position());
  leave_pairs(parts);
  if (std::holds_alternative<Linear>(o.select)) {
    auto* const held = dynamic_cast<SeparableCache*>(&cache);
    TORCH_CHECK(held != nullptr, at_, "cache: expected a separable cache");
    const std::vector<at::Tensor> features = features_of(parts);
    const at::TensorList all(features);
    return join_heads(held->attend(all[0], all.slice(1, o.order), all.slice(1 + o.order)).out);
  }
  const at::TensorList all(parts);
  if (counts_places(o)) {
    auto* const kept = dynamic_cast<IndexedCache*>(&cache);
    TORCH_CHECK(kept != nullptr, at_, "cache: expected one of this layer's make_cache()");
    const CachedKeys seen = kept->extend(all[0], all.slice(1, o.order), all.slice(1 + o.order));
    return join_heads(attend_to_window(heads_and_cached(all[0], seen), {}).out);
  }
  auto* const held = dynamic_cast<KeyValueCache*>(&cache);
  TORCH_CHECK(held != nullptr, at_, "cache: expected a key/value cache");
  const at::Tensor out =
      held->attend(all[0], all.slice(1, o.order), all.slice(1 + o.order), attention_options()).out;
  return join_heads(out);
}

void SimplicialAttentionImpl::require_cacheable() const {
  require(options_.causal && options_.context_dims.empty(), at_,
          "cache: only causal self-attention can go on from one");
  require(detail::graph_of(options_.select) == nullptr, at_,
          "select: Neighbours has no cache, because its graph is one of all tokens");
}

std::vector<int64_t> SimplicialAttentionImpl::cache_window(int64_t unbounded) const {
  const auto& o = options_;
  std::vector<int64_t> window(o.order, unbounded);
  for (int64_t m = 0; m < o.order && !o.window.empty(); ++m) {
    const int64_t left = o.window[o.window.size() == 1 ? 0 : m].left;
    if (left >= 0) window[m] = left;
  }
  return window;
}

std::shared_ptr<LayerCache> SimplicialAttentionImpl::make_cache(int64_t unbounded) const {
  if (groups_) {
    std::vector<std::shared_ptr<LayerCache>> caches;
    for (const auto& group : groups_->children()) {
      caches.push_back(group->as<SimplicialAttentionImpl>()->make_cache(unbounded));
    }
    return std::make_shared<GroupCache>(std::move(caches));
  }
  require_cacheable();
  if (std::holds_alternative<Linear>(options_.select)) {
    return std::make_shared<SeparableCache>(cache_window(-1));
  }
  if (detail::chooses_keys(options_.select) || counts_places(options_)) {
    return std::make_shared<IndexedCache>(options_.order);
  }
  return std::make_shared<KeyValueCache>(cache_window(unbounded));
}

at::Tensor SimplicialAttentionImpl::continue_chosen(const at::Tensor& x, LayerCache& cache) {
  auto* const held = dynamic_cast<IndexedCache*>(&cache);
  TORCH_CHECK(held != nullptr, at_, "cache: expected an indexed cache");
  const int64_t order = options_.order, first = cache.position(), last = first + x.size(1);
  const std::vector<at::Tensor> parts = heads_of(x, first);
  leave_pairs(parts);
  std::optional<IndexParts> index = index_of(x, first, std::nullopt);
  const at::TensorList all(parts);
  const CachedKeys cached = held->extend(all[0], all.slice(1, order), all.slice(1 + order));
  if (index) {
    index->key = held->append_index(index->key);
    index->lse.reset();  // the source's lse may be over fewer keys than are scored here
  }
  const at::Tensor queries = at::arange(first, last, x.options().dtype(at::kLong));
  std::vector<at::Tensor> tables = tables_of(index, queries, last, {});
  if (std::holds_alternative<Path>(options_.select)) tables = {held->append_table(tables[0])};
  return join_heads(attend_to_tables(heads_and_cached(parts[0], cached), tables).out);
}

}  // namespace nsimplex

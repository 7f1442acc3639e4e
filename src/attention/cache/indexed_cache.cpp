// The cache of a layer that selects keys: keys and values with the rows of its indexer or its
// table.

#include <nsimplex/cache.h>
#include <torch/library.h>

#include "attention/common/layer_cache.h"

namespace nsimplex {

using at::Tensor;

// Rows beside the keys, one per token, or none.
struct IndexedCache::Rows {
  cache::Ring index{-1}, table{-1};

  template <class Function>
  void for_each(Function&& function) {
    function("index", index);
    function("table", table);
  }
};

IndexedCache::IndexedCache(int64_t order)
    : keys_(std::vector<int64_t>(static_cast<size_t>(order), -1)),
      rows_(std::make_shared<Rows>()) {}

CachedKeys IndexedCache::extend(const Tensor& query, at::TensorList keys, at::TensorList values) {
  return keys_.extend(query, keys, values);
}

Tensor IndexedCache::append_index(const Tensor& rows) {
  rows_->index.append(rows);
  return rows_->index.in_slots();
}

Tensor IndexedCache::append_table(const Tensor& chosen) {
  rows_->table.append(chosen.unsqueeze(1));
  return rows_->table.in_slots().squeeze(1);
}

const std::vector<int64_t>& IndexedCache::window() const { return keys_.window(); }
int64_t IndexedCache::position() const { return keys_.position(); }

int64_t IndexedCache::bytes() const {
  int64_t sum = keys_.bytes();
  rows_->for_each([&](const char*, const cache::Ring& ring) {
    if (ring.storage().defined()) sum += static_cast<int64_t>(ring.storage().nbytes());
  });
  return sum;
}

void IndexedCache::reset() {
  keys_.reset();
  *rows_ = Rows();
}

void IndexedCache::select(const Tensor& entries) {
  keys_.select(entries);
  rows_->for_each([&](const char*, cache::Ring& ring) {
    if (ring.storage().defined()) ring.select(entries);
  });
}

CacheState IndexedCache::state() const {
  CacheState state = keys_.state();
  rows_->for_each([&](const char* name, const cache::Ring& ring) {
    if (ring.position() > 0) state.emplace(name, ring.in_slots().clone());
  });
  return state;
}

void IndexedCache::load_state(const CacheState& state) {
  IndexedCache loaded(static_cast<int64_t>(window().size()));
  CacheState of_keys = state;
  loaded.rows_->for_each([&](const char* name, cache::Ring& ring) {
    const auto found = state.find(name);
    if (found == state.end()) return;
    TORCH_CHECK_VALUE(found->second.dim() == 4, "[IndexedCache] state: expected ", name,
                      " of 4 dimensions, got ", found->second.sizes());
    ring.restore(found->second.detach(), found->second.size(2));
    of_keys.erase(name);
  });
  loaded.keys_.load_state(of_keys);
  loaded.rows_->for_each([&](const char* name, const cache::Ring& ring) {
    TORCH_CHECK_VALUE(ring.position() == 0 || ring.position() == loaded.position(),
                      "[IndexedCache] state: expected ", name, " of ", loaded.position(),
                      " tokens, got ", ring.position());
  });
  take(loaded);
}

std::shared_ptr<LayerCache> IndexedCache::fresh() const {
  return std::make_shared<IndexedCache>(static_cast<int64_t>(window().size()));
}

void IndexedCache::take(LayerCache& other) {
  auto& from = dynamic_cast<IndexedCache&>(other);
  keys_.take(from.keys_);
  *rows_ = std::move(*from.rows_);
}

namespace cache {
namespace {

struct IndexedCacheClass : LayerCacheHolder {
  explicit IndexedCacheClass(int64_t order) : cache(order) {}
  std::shared_ptr<LayerCache> layer() const override {
    return std::make_shared<IndexedCache>(cache);
  }
  IndexedCache cache;
};

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  using Handle = c10::intrusive_ptr<IndexedCacheClass>;
  using Tensors = std::vector<Tensor>;
  auto type = m.class_<IndexedCacheClass>("IndexedCache");
  type.def(torch::init<int64_t>())
      .def("extend",
           [](const Handle& self, const Tensor& query, const Tensors& keys, const Tensors& values) {
             CachedKeys cached = self->cache.extend(query, keys, values);
             return std::make_tuple(std::move(cached.keys), std::move(cached.values));
           })
      .def("append_index",
           [](const Handle& self, const Tensor& rows) { return self->cache.append_index(rows); })
      .def("append_table", [](const Handle& self, const Tensor& chosen) {
        return self->cache.append_table(chosen);
      });
  define_layer_cache(type);
}

}  // namespace
}  // namespace cache
}  // namespace nsimplex

// The caches as classes for Python, torch.classes.nsimplex. They store tensors only, because Python
// calls the operator itself, with all its options.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>
#include <nsimplex/cache.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/layer_cache.h"
#include "support/error.h"

namespace nsimplex {
namespace {

using at::Tensor;
using cache::Ring;

constexpr const char* kAt = "[KeyValueCache] ";

// The expected shape of the chunks of a call. Without storage, the first key determines it.
struct Expected {
  int64_t batch, heads, tokens, channels;
  const Tensor& like;
};

void check_chunk(const Tensor& rows, const char* name, size_t axis, const Expected& expected) {
  TORCH_CHECK_VALUE(
      rows.dim() == 4 && rows.size(0) == expected.batch && rows.size(1) == expected.heads &&
          rows.size(2) == expected.tokens && rows.size(3) == expected.channels,
      kAt, name, "[", axis, "]: expected shape [", expected.batch, ", ", expected.heads, ", ",
      expected.tokens, ", ", expected.channels, "], got ", rows.sizes());
  TORCH_CHECK_TYPE(rows.scalar_type() == expected.like.scalar_type(), kAt, name, "[", axis,
                   "]: expected ", expected.like.scalar_type(), ", got ", rows.scalar_type());
  TORCH_CHECK_VALUE(rows.device() == expected.like.device(), kAt, name, "[", axis, "]: expected ",
                    expected.like.device(), ", got ", rows.device());
  TORCH_CHECK_VALUE(!(at::GradMode::is_enabled() && rows.requires_grad()), kAt, name, "[", axis,
                    "]: requires a gradient, but a cache is for inference only: call it under "
                    "no_grad, or detach");
}

// Compares keys and values of a chunk with each other and with the storage.
void check_chunks(const std::vector<Ring>& stored_keys, const std::vector<Ring>& stored_values,
                  at::TensorList keys, at::TensorList values) {
  const size_t order = stored_keys.size();
  TORCH_CHECK_VALUE(keys.size() == order, kAt, "keys: expected one for each of ", order,
                    " axes, got ", keys.size());
  TORCH_CHECK_VALUE(values.size() == order, kAt, "values: expected one for each of ", order,
                    " axes, got ", values.size());
  const auto first = [](const std::vector<Ring>& stored, at::TensorList given, const char* name) {
    TORCH_CHECK_VALUE(given[0].dim() == 4, kAt, name, "[0]: expected 4 dimensions, got ",
                      given[0].sizes());
    return stored[0].storage().defined() ? stored[0].storage() : given[0];
  };
  const Tensor key = first(stored_keys, keys, "keys");
  const Tensor value = first(stored_values, values, "values");
  const int64_t tokens = keys[0].size(2);
  for (size_t m = 0; m < order; ++m) {
    check_chunk(keys[m], "keys", m, {key.size(0), key.size(1), tokens, key.size(3), key});
    check_chunk(values[m], "values", m, {key.size(0), key.size(1), tokens, value.size(3), key});
  }
}

// Checks the queries of the last tokens against the keys.
void check_query(const Tensor& query, const Tensor& key) {
  TORCH_CHECK_VALUE(query.dim() == 4 && query.size(0) == key.size(0) &&
                        query.size(1) % key.size(1) == 0 && query.size(3) == key.size(3),
                    kAt, "query: expected shape [", key.size(0), ", a multiple of ", key.size(1),
                    ", t, ", key.size(3), "], got ", query.sizes());
  TORCH_CHECK_TYPE(query.scalar_type() == key.scalar_type(), kAt, "query: expected ",
                   key.scalar_type(), ", got ", query.scalar_type());
}

// Rejects windows, which belong to the cache, and options that a ring of keys does not take.
void check_options(AttentionOptions options) {
  TORCH_CHECK_VALUE(options.window.empty(), kAt, "window: belongs to the cache, got ",
                    options.window.size(), " entries with the call");
  TORCH_CHECK_VALUE(options.layout == Layout::bhtd, kAt,
                    "layout: the cache keeps [B, heads, T, D], expected Layout::bhtd");
  options.causal = false;  // implied
  dense::require_handled("KeyValueCache", dense::pass_options(options), dense::kRing);
}

AttentionOutput attend_to(const Tensor& query, CachedKeys cached, AttentionOptions options) {
  options.causal = !cached.window.empty();
  options.window = std::move(cached.window);
  return attention(query, cached.keys, cached.values, options);
}

// Windows for queries whose keys are in order.
std::vector<Window> causal_windows(const std::vector<int64_t>& window) {
  std::vector<Window> windows;
  for (const int64_t w : window) windows.push_back(w < 0 ? Window{} : Window::last(w));
  return windows;
}

}  // namespace

KeyValueCache::KeyValueCache(std::vector<int64_t> window) : storage_(std::make_shared<Storage>()) {
  TORCH_CHECK_VALUE(!window.empty(), kAt, "window: expected one entry an axis, got none");
  for (size_t m = 0; m < window.size(); ++m) {
    TORCH_CHECK_VALUE(window[m] == -1 || window[m] >= 1, kAt, "window[", m,
                      "]: expected at least 1, or -1 (all keys), got ", window[m]);
    storage_->keys.emplace_back(window[m]);
    storage_->values.emplace_back(window[m]);
  }
  storage_->window = std::move(window);
}

void KeyValueCache::append(at::TensorList keys, at::TensorList values) {
  check_chunks(storage_->keys, storage_->values, keys, values);
  for (size_t m = 0; m < keys.size(); ++m) {
    storage_->keys[m].append(keys[m]);
    storage_->values[m].append(values[m]);
  }
}

CachedKeys KeyValueCache::extend(const Tensor& query, at::TensorList keys, at::TensorList values) {
  check_chunks(storage_->keys, storage_->values, keys, values);
  check_query(query, keys[0]);
  const int64_t tokens = keys[0].size(2);
  TORCH_CHECK_VALUE(query.size(2) == tokens, kAt, "query: expected a query for each of the ",
                    tokens, " keys, got ", query.size(2));
  if (tokens == 1) {
    append(keys, values);
    return view(query);
  }
  CachedKeys chunk{{}, {}, causal_windows(storage_->window)};
  const auto behind_its_past = [](const Ring& ring, int64_t window, const Tensor& rows) {
    const int64_t past = window < 0 ? ring.held() : std::min(ring.held(), window - 1);
    return past == 0 ? rows : at::cat({ring.last(past), rows}, 2);
  };
  for (size_t m = 0; m < keys.size(); ++m) {
    const int64_t window = storage_->window[m];
    chunk.keys.push_back(behind_its_past(storage_->keys[m], window, keys[m]));
    chunk.values.push_back(behind_its_past(storage_->values[m], window, values[m]));
  }
  append(keys, values);
  return chunk;
}

CachedKeys KeyValueCache::view(const Tensor& query) const {
  const Tensor& stored = storage_->keys[0].storage();
  TORCH_CHECK_VALUE(stored.defined(), kAt, "attend: nothing has been appended yet");
  check_query(query, stored);
  const int64_t queries = query.size(2), position = storage_->position();
  TORCH_CHECK_VALUE(queries >= 1 && queries <= position, kAt, "query: expected 1 to ", position,
                    " queries, one per token, got ", queries);
  CachedKeys cached;
  if (queries > 1) cached.window = causal_windows(storage_->window);
  for (size_t m = 0; m < storage_->keys.size(); ++m) {
    TORCH_CHECK_VALUE(queries == 1 || storage_->keys[m].held() == position, kAt,
                      "query: expected 1 query, got ", queries, ": axis ", m,
                      " has dropped keys that the first ones see; pass chunks with their queries");
    cached.keys.push_back(storage_->keys[m].in_slots());
    cached.values.push_back(storage_->values[m].in_slots());
  }
  return cached;
}

AttentionOutput KeyValueCache::attend(const Tensor& query, at::TensorList keys,
                                      at::TensorList values, const AttentionOptions& options) {
  check_options(options);
  return attend_to(query, extend(query, keys, values), options);
}

AttentionOutput KeyValueCache::attend(const Tensor& query, const AttentionOptions& options) const {
  check_options(options);
  return attend_to(query, view(query), options);
}

const std::vector<int64_t>& KeyValueCache::window() const { return storage_->window; }
int64_t KeyValueCache::position() const { return storage_->position(); }

int64_t KeyValueCache::bytes() const {
  int64_t sum = 0;
  for (const auto* rings : {&storage_->keys, &storage_->values}) {
    for (const Ring& ring : *rings) {
      if (ring.storage().defined()) sum += static_cast<int64_t>(ring.storage().nbytes());
    }
  }
  return sum;
}

void KeyValueCache::reset() {
  for (auto* rings : {&storage_->keys, &storage_->values}) {
    for (Ring& ring : *rings) ring.reset();
  }
}

void KeyValueCache::select(const Tensor& entries) {
  const Tensor& stored = storage_->keys[0].storage();
  cache::check_entries(kAt, entries, stored.defined() ? stored.size(0) : 0);
  for (auto* rings : {&storage_->keys, &storage_->values}) {
    for (Ring& ring : *rings) ring.select(entries.to(stored.device()));
  }
}

}  // namespace nsimplex

namespace nsimplex::cache {

using at::Tensor;

TensorDict to_dict(const CacheState& state) {
  TensorDict dict;
  for (const auto& [name, tensor] : state) dict.insert(name, tensor);
  return dict;
}

CacheState to_state(const TensorDict& dict) {
  CacheState state;
  for (const auto& entry : dict) state.emplace(entry.key(), entry.value());
  return state;
}

namespace {

// Keys, values, and the windows as the operator's flat list.
using Flat = std::tuple<std::vector<Tensor>, std::vector<Tensor>, std::vector<int64_t>>;

Flat flatten(CachedKeys cached) {
  std::vector<int64_t> window;
  for (const Window& each : cached.window) window.insert(window.end(), {each.left, each.right});
  return {std::move(cached.keys), std::move(cached.values), std::move(window)};
}

struct KeyValueCacheClass : LayerCacheHolder {
  explicit KeyValueCacheClass(std::vector<int64_t> window) : cache(std::move(window)) {}
  std::shared_ptr<LayerCache> layer() const override {
    return std::make_shared<KeyValueCache>(cache);
  }
  KeyValueCache cache;
};

using CacheHandle = c10::intrusive_ptr<KeyValueCacheClass>;

struct LayerCachesClass : torch::CustomClassHolder {
  explicit LayerCachesClass(const c10::List<c10::IValue>& layers) : caches(unwrap(layers)) {}
  // Every cache class of the library holds its cache through a LayerCacheHolder.
  static std::vector<std::shared_ptr<LayerCache>> unwrap(const c10::List<c10::IValue>& layers) {
    std::vector<std::shared_ptr<LayerCache>> caches;
    for (const c10::IValue& each : layers) {
      const c10::intrusive_ptr<c10::ivalue::Object> object = each.toObject();
      const auto holder = object->getSlot(0).toCapsule();
      const auto* const layer = dynamic_cast<const LayerCacheHolder*>(holder.get());
      TORCH_CHECK_VALUE(layer != nullptr, "[LayerCaches] layers: expected caches of layers");
      caches.push_back(layer->layer());
    }
    return caches;
  }
  LayerCaches caches;
};

using LayersHandle = c10::intrusive_ptr<LayerCachesClass>;

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  using Tensors = std::vector<Tensor>;
  auto key_values = m.class_<KeyValueCacheClass>("KeyValueCache");
  key_values.def(torch::init<std::vector<int64_t>>())
      .def("append", [](const CacheHandle& self, const Tensors& keys,
                        const Tensors& values) { self->cache.append(keys, values); })
      .def("extend",
           [](const CacheHandle& self, const Tensor& query, const Tensors& keys,
              const Tensors& values) { return flatten(self->cache.extend(query, keys, values)); })
      .def("view", [](const CacheHandle& self, const Tensor& query) {
        return flatten(self->cache.view(query));
      });
  define_layer_cache(key_values);
  m.class_<LayerCachesClass>("LayerCaches")
      .def(torch::init<c10::List<c10::IValue>>())
      .def("position", [](const LayersHandle& self) { return self->caches.position(); })
      .def("bytes", [](const LayersHandle& self) { return self->caches.bytes(); })
      .def("reset", [](const LayersHandle& self) { self->caches.reset(); })
      .def("select",
           [](const LayersHandle& self, const Tensor& entries) { self->caches.select(entries); })
      .def("state", [](const LayersHandle& self) { return to_dict(self->caches.state()); })
      .def("load_state", [](const LayersHandle& self,
                            const TensorDict& state) { self->caches.load_state(to_state(state)); })
      .def("save",
           [](const LayersHandle& self, const std::string& path) { self->caches.save(path); })
      .def("load", [](const LayersHandle& self, const std::string& path, c10::Device device) {
        try {
          self->caches.load(path, device);
        } catch (const InputError& error) {  // a ValueError in Python, as for every reader
          C10_THROW_ERROR(ValueError, error.what());
        }
      });
}

}  // namespace
}  // namespace nsimplex::cache

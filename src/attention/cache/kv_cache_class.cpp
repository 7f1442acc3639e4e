// The caches as classes for Python, torch.classes.nsimplex: the tensors' part only, since Python
// calls the operator itself, with all its options.

#include <torch/library.h>

#include "attention/cache/layer_cache_class.h"
#include "support/error.h"

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
        } catch (const InputError& error) {  // a ValueError in Python, as that of every reader
          TORCH_CHECK_VALUE(false, error.what());
        }
      });
}

}  // namespace
}  // namespace nsimplex::cache

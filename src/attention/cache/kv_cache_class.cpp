// The caches as classes for Python, torch.classes.nsimplex: the tensors' part only, since Python
// calls the operator itself, with all its options.

#include <nsimplex/kv_cache.h>
#include <torch/custom_class.h>
#include <torch/library.h>

namespace nsimplex::cache {
namespace {

using at::Tensor;
using TensorDict = c10::Dict<std::string, Tensor>;

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

// Keys, values, and the windows as the operator's flat list.
using Flat = std::tuple<std::vector<Tensor>, std::vector<Tensor>, std::vector<int64_t>>;

Flat flatten(CachedKeys cached) {
  std::vector<int64_t> window;
  for (const Window& each : cached.window) window.insert(window.end(), {each.left, each.right});
  return {std::move(cached.keys), std::move(cached.values), std::move(window)};
}

struct KeyValueCacheClass : torch::CustomClassHolder {
  explicit KeyValueCacheClass(std::vector<int64_t> window) : cache(std::move(window)) {}
  explicit KeyValueCacheClass(KeyValueCache cache) : cache(std::move(cache)) {}
  KeyValueCache cache;
};

using CacheHandle = c10::intrusive_ptr<KeyValueCacheClass>;

struct LayerCachesClass : torch::CustomClassHolder {
  explicit LayerCachesClass(const std::vector<CacheHandle>& layers) : caches(unwrap(layers)) {}
  static std::vector<KeyValueCache> unwrap(const std::vector<CacheHandle>& layers) {
    std::vector<KeyValueCache> caches;
    for (const CacheHandle& layer : layers) caches.push_back(layer->cache);
    return caches;
  }
  LayerCaches caches;
};

using LayersHandle = c10::intrusive_ptr<LayerCachesClass>;

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  using Tensors = std::vector<Tensor>;
  m.class_<KeyValueCacheClass>("KeyValueCache")
      .def(torch::init<std::vector<int64_t>>())
      .def("append", [](const CacheHandle& self, const Tensors& keys,
                        const Tensors& values) { self->cache.append(keys, values); })
      .def("extend",
           [](const CacheHandle& self, const Tensor& query, const Tensors& keys,
              const Tensors& values) { return flatten(self->cache.extend(query, keys, values)); })
      .def("view", [](const CacheHandle& self,
                      const Tensor& query) { return flatten(self->cache.view(query)); })
      .def("window", [](const CacheHandle& self) { return self->cache.window(); })
      .def("position", [](const CacheHandle& self) { return self->cache.position(); })
      .def("bytes", [](const CacheHandle& self) { return self->cache.bytes(); })
      .def("reset", [](const CacheHandle& self) { self->cache.reset(); })
      .def("select",
           [](const CacheHandle& self, const Tensor& entries) { self->cache.select(entries); })
      .def("state", [](const CacheHandle& self) { return to_dict(self->cache.state()); })
      .def("load_state", [](const CacheHandle& self, const TensorDict& state) {
        self->cache.load_state(to_state(state));
      });
  m.class_<LayerCachesClass>("LayerCaches")
      .def(torch::init<std::vector<CacheHandle>>())
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
        self->caches.load(path, device);
      });
}

}  // namespace
}  // namespace nsimplex::cache

#pragma once

#include <nsimplex/kv_cache.h>
#include <torch/custom_class.h>

namespace nsimplex::cache {

using TensorDict = c10::Dict<std::string, at::Tensor>;

/// A cache as Python holds it: what LayerCaches asks each of its layers for.
struct LayerCacheHolder : torch::CustomClassHolder {
  /// A handle on the same cache.
  virtual std::shared_ptr<LayerCache> layer() const = 0;
};

/// States as dictionaries and back.
TensorDict to_dict(const CacheState& state);
CacheState to_state(const TensorDict& dict);

/// The methods that every kind of cache has.
template <class Class>
void define_layer_cache(torch::class_<Class>& type) {
  using Handle = c10::intrusive_ptr<Class>;
  type.def("window", [](const Handle& self) { return self->cache.window(); })
      .def("position", [](const Handle& self) { return self->cache.position(); })
      .def("bytes", [](const Handle& self) { return self->cache.bytes(); })
      .def("reset", [](const Handle& self) { self->cache.reset(); })
      .def("select",
           [](const Handle& self, const at::Tensor& entries) { self->cache.select(entries); })
      .def("state", [](const Handle& self) { return to_dict(self->cache.state()); })
      .def("load_state", [](const Handle& self, const TensorDict& state) {
        self->cache.load_state(to_state(state));
      });
}

}  // namespace nsimplex::cache

// The cache as a class for Python, torch.classes.nsimplex.

#include <nsimplex/separable.h>
#include <torch/library.h>

#include "attention/cache/layer_cache_class.h"

namespace nsimplex::separable {
namespace {

using at::Tensor;

struct SeparableCacheClass : cache::LayerCacheHolder {
  explicit SeparableCacheClass(std::vector<int64_t> window) : cache(std::move(window)) {}
  std::shared_ptr<LayerCache> layer() const override {
    return std::make_shared<SeparableCache>(cache);
  }
  SeparableCache cache;
};

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  using Handle = c10::intrusive_ptr<SeparableCacheClass>;
  using Tensors = std::vector<Tensor>;
  auto type = m.class_<SeparableCacheClass>("SeparableCache");
  type.def(torch::init<std::vector<int64_t>>())
      .def("attend",
           [](const Handle& self, const Tensor& query, const Tensors& keys, const Tensors& values) {
             SeparableOutput result = self->cache.attend(query, keys, values);
             return std::make_tuple(std::move(result.out), std::move(result.normalizer));
           });
  cache::define_layer_cache(type);
}

}  // namespace
}  // namespace nsimplex::separable

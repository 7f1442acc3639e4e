// The cache as a class for Python, torch.classes.nsimplex.

#include <nsimplex/separable.h>
#include <torch/custom_class.h>
#include <torch/library.h>

namespace nsimplex::separable {
namespace {

using at::Tensor;
using TensorDict = c10::Dict<std::string, Tensor>;

struct SeparableCacheClass : torch::CustomClassHolder {
  explicit SeparableCacheClass(std::vector<int64_t> window) : cache(std::move(window)) {}
  SeparableCache cache;
};

using Handle = c10::intrusive_ptr<SeparableCacheClass>;
using Tensors = std::vector<Tensor>;

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.class_<SeparableCacheClass>("SeparableCache")
      .def(torch::init<std::vector<int64_t>>())
      .def("attend",
           [](const Handle& self, const Tensor& query, const Tensors& keys, const Tensors& values) {
             SeparableOutput result = self->cache.attend(query, keys, values);
             return std::make_tuple(std::move(result.out), std::move(result.normalizer));
           })
      .def("window", [](const Handle& self) { return self->cache.window(); })
      .def("position", [](const Handle& self) { return self->cache.position(); })
      .def("bytes", [](const Handle& self) { return self->cache.bytes(); })
      .def("reset", [](const Handle& self) { self->cache.reset(); })
      .def("select", [](const Handle& self, const Tensor& entries) { self->cache.select(entries); })
      .def("state",
           [](const Handle& self) {
             TensorDict dict;
             for (const auto& [name, tensor] : self->cache.state()) dict.insert(name, tensor);
             return dict;
           })
      .def("load_state", [](const Handle& self, const TensorDict& dict) {
        CacheState state;
        for (const auto& entry : dict) state.emplace(entry.key(), entry.value());
        self->cache.load_state(state);
      });
}

}  // namespace
}  // namespace nsimplex::separable

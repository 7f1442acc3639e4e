#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/cache.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cstdint>

namespace nsimplex::cache {

/// The last `window` rows of a growing [B, H, T, C] sequence; -1: all of them.
///
/// The row of position t lies in slot t mod capacity. Capacity doubles until it is the window, and
/// no row is dropped before that: a ring that still grows has never wrapped.
class Ring {
 public:
  explicit Ring(int64_t window) : window_(window) {}

  /// rows [B, H, t, C], t >= 0; the first call decides B, H, C, dtype and device.
  void append(const at::Tensor& rows);

  /// Rows held, in the order of slots: all rows in order until the first is dropped. A view.
  at::Tensor in_slots() const { return rows_.narrow(2, 0, held()); }

  /// The last `count` rows held, in the order of positions; a view where they do not wrap.
  at::Tensor last(int64_t count) const;

  int64_t position() const { return position_; }  ///< rows appended so far
  int64_t held() const { return window_ < 0 ? position_ : std::min(position_, window_); }

  void reset();
  void select(const at::Tensor& entries);

  /// Starts again with these rows, the last of `position` ones.
  void restore(const at::Tensor& rows, int64_t position);

  /// [B, H, capacity, C]; undefined before the first append.
  const at::Tensor& storage() const { return rows_; }

 private:
  void reserve(const at::Tensor& like, int64_t rows);

  int64_t window_;
  int64_t position_ = 0;
  at::Tensor rows_;
};

}  // namespace nsimplex::cache

namespace nsimplex {

/// The rings of one cache, one an axis; all have the same position.
struct KeyValueCache::Storage {
  std::vector<int64_t> window;
  std::vector<cache::Ring> keys, values;

  int64_t order() const { return static_cast<int64_t>(window.size()); }
  int64_t position() const { return keys[0].position(); }
};

}  // namespace nsimplex

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

// Declares the ring of rows from which caches are made, and their helpers.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/cache.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cstdint>

namespace nsimplex::cache {

/// The last `window` rows of a growing [B, H, T, C] sequence; -1: all of them.
///
/// The row of position t is in slot t mod capacity. The capacity doubles until it is the window,
/// and no row is dropped before that. So a growing ring has never wrapped.
class Ring {
 public:
  explicit Ring(int64_t window) : window_(window) {}

  /// Appends rows [B, H, t, C], t >= 0. The first call determines B, H, C, dtype and device.
  void append(const at::Tensor& rows);

  /// The stored rows in the order of slots: all rows in order until the first is dropped. A view.
  at::Tensor in_slots() const { return rows_.narrow(2, 0, held()); }

  /// The last `count` stored rows in the order of positions. A view if they do not wrap.
  at::Tensor last(int64_t count) const;

  int64_t position() const { return position_; }  ///< number of rows appended so far
  int64_t held() const { return window_ < 0 ? position_ : std::min(position_, window_); }

  void reset();
  void select(const at::Tensor& entries);

  /// Replaces the contents by these rows, the last of `position` rows.
  void restore(const at::Tensor& rows, int64_t position);

  /// [B, H, capacity, C]; undefined before the first append.
  const at::Tensor& storage() const { return rows_; }

 private:
  void reserve(const at::Tensor& like, int64_t rows);

  int64_t window_;
  int64_t position_ = 0;
  at::Tensor rows_;
};

/// Checks the entries [B'] that a cache of `batch` sequences is to go on with; 0: it is empty. `at`
/// names the cache in errors.
void check_entries(const char* at, const at::Tensor& entries, int64_t batch);

}  // namespace nsimplex::cache

namespace nsimplex {

/// The rings of one cache, one per axis. All have the same position.
struct KeyValueCache::Storage {
  std::vector<int64_t> window;
  std::vector<cache::Ring> keys, values;

  int64_t order() const { return static_cast<int64_t>(window.size()); }
  int64_t position() const { return keys[0].position(); }
};

}  // namespace nsimplex

namespace nsimplex::cache {

using TensorDict = c10::Dict<std::string, at::Tensor>;

/// A cache in the form in which Python holds it. LayerCaches gets the caches of its layers from it.
struct LayerCacheHolder : torch::CustomClassHolder {
  /// A handle on the same cache.
  virtual std::shared_ptr<LayerCache> layer() const = 0;
};

/// Conversion of states to dictionaries and back.
TensorDict to_dict(const CacheState& state);
CacheState to_state(const TensorDict& dict);

/// Adds the methods that every kind of cache has.
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

#pragma once

#include <nsimplex/kv_cache.h>

#include "attention/cache/ring.h"

namespace nsimplex {

/// The rings of one cache, one an axis; all have the same position.
struct KeyValueCache::Storage {
  std::vector<int64_t> window;
  std::vector<cache::Ring> keys, values;

  int64_t order() const { return static_cast<int64_t>(window.size()); }
  int64_t position() const { return keys[0].position(); }
};

}  // namespace nsimplex

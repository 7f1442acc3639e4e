#pragma once

#include <nsimplex/kv_cache.h>

namespace nsimplex {

/// What a layer that chooses its keys keeps: the keys and values of all tokens, the rows its
/// indexer scores them by, and, where it attends along paths, the keys that every token chose. A
/// chain can reach any token, so nothing is ever dropped.
///
/// Shapes, dtypes and device are those of the first chunk. For inference only. Not for two threads
/// at a time.
class NSIMPLEX_API IndexedCache : public LayerCache {
 public:
  explicit IndexedCache(int64_t order);

  /// Appends a chunk, as KeyValueCache::extend() does: the keys and values of all tokens.
  CachedKeys extend(const at::Tensor& query, at::TensorList keys, at::TensorList values);

  /// Appends rows [B, H, t, C] of the indexer: those of all tokens, [B, H, T, C].
  at::Tensor append_index(const at::Tensor& rows);

  /// Appends chosen keys [B, t, k]: those of all tokens, [B, T, k].
  at::Tensor append_table(const at::Tensor& chosen);

  const std::vector<int64_t>& window() const override;  ///< -1 on every axis
  int64_t position() const override;
  int64_t bytes() const override;
  void reset() override;
  void select(const at::Tensor& entries) override;

  /// As KeyValueCache::state(), with `index` and `table` where there are any.
  CacheState state() const override;
  void load_state(const CacheState& state) override;
  std::shared_ptr<LayerCache> fresh() const override;
  void take(LayerCache& other) override;

 private:
  struct Rows;
  KeyValueCache keys_;
  std::shared_ptr<Rows> rows_;
};

}  // namespace nsimplex

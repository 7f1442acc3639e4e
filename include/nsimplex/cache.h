// Caches of keys and values for decoding.

#pragma once

#include <nsimplex/attention.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nsimplex {

/// Tensors by name: the form in which a cache is saved.
using CacheState = std::map<std::string, at::Tensor>;

/// The keys and values that a chunk of queries attends to.
struct CachedKeys {
  std::vector<at::Tensor> keys, values;  ///< one per axis, [B, Hk, T_m, D] and [B, Hk, T_m, Dv]
  std::vector<Window> window;  ///< one per axis, causal; empty: every query sees every key
};

/// The state that one layer keeps of the tokens so far. It is a handle, like a tensor: copies share
/// the state.
class NSIMPLEX_API LayerCache {
 public:
  virtual ~LayerCache() = default;

  /// How many keys each axis sees; -1: all.
  virtual const std::vector<int64_t>& window() const = 0;

  virtual int64_t position() const = 0;  ///< number of tokens so far: the position of the next one
  virtual int64_t bytes() const = 0;     ///< memory of the state

  /// Forgets all tokens, the shapes and the storage.
  virtual void reset() = 0;

  /// Replaces the batch by its entries [B'] (int64), in this order. Repeated entries are copied
  /// (beam search). O(bytes).
  virtual void select(const at::Tensor& entries) = 0;

  /// The whole state by name, and `position`. Copies.
  virtual CacheState state() const = 0;

  /// Continues from a state(). The cache must have the same kind and windows, otherwise it throws.
  virtual void load_state(const CacheState& state) = 0;

  /// An empty cache of the same kind and windows.
  virtual std::shared_ptr<LayerCache> fresh() const = 0;

  /// Takes over the state of `other`, which must be a fresh() cache of this one.
  virtual void take(LayerCache& other) = 0;
};

/// Keys and values of the tokens so far. With them causal self-attention continues without
/// computing them again (decoding).
///
///     KeyValueCache cache({32, 512});                // the last keys seen on each axis
///     cache.attend(query, {k1, k2}, {v1, v2});       // the prompt, in chunks of any length
///     cache.attend(next_query, {k1, k2}, {v1, v2});  // one token after the other
///
/// The result equals that of attention() over the whole sequence with causal = true and these
/// windows, to rounding, however the sequence is cut.
///
/// Every axis holds its last w_m keys and values in a ring: the key of position t is in slot t mod
/// w_m. A window of -1 holds all keys. Storage doubles until it has this size, so it is at most B
/// Hk (D + Dv) sum_m w_m elements (twice that while an unbounded axis grows). Softmax does not
/// depend on the order of keys, so a single query attends to the ring without a copy. A longer
/// chunk attends to a copy of the last w_m - 1 keys in order, followed by the chunk's own keys.
///
/// Batch entries advance together: a chunk has the same number of tokens for all entries and axes.
/// The first chunk determines shapes, dtype and device. The cache is for inference only: it refuses
/// tensors that require a gradient while gradients are recorded. Apply rotary positions to the keys
/// before you append them; position() counts the tokens.
///
/// A handle, like a tensor: copies share one cache. It is not safe for two threads at a time.
///
/// Errors: c10::ValueError, c10::TypeError or c10::NotImplementedError with one line. A refused
/// call leaves the cache unchanged.
class NSIMPLEX_API KeyValueCache : public LayerCache {
 public:
  /// `window`: how many keys an axis holds and a query sees, its own position included; -1: all.
  explicit KeyValueCache(std::vector<int64_t> window);

  /// Appends a chunk: N keys [B, Hk, t, D] and N values [B, Hk, t, Dv], t >= 0. Copies O(t), or
  /// O(T) when the storage grows.
  void append(at::TensorList keys, at::TensorList values);

  /// Appends the chunk and attends with its queries [B, Hq, t, D]. The options imply causal, and
  /// the windows are the cache's. Options that refer to keys by their place in a tensor (lengths,
  /// masks, documents, distinct, dropout, query positions) are refused.
  AttentionOutput attend(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                         const AttentionOptions& options = {});

  /// Attends with the queries of the last t positions appended. t > 1 works only while no axis has
  /// dropped a key.
  AttentionOutput attend(const at::Tensor& query, const AttentionOptions& options = {}) const;

  /// The keys and values that attend() would use, for callers that call the operator themselves.
  /// The first function appends. The result is valid until the cache changes.
  CachedKeys extend(const at::Tensor& query, at::TensorList keys, at::TensorList values);
  CachedKeys view(const at::Tensor& query) const;

  const std::vector<int64_t>& window() const override;
  int64_t position() const override;
  int64_t bytes() const override;
  void reset() override;
  void select(const at::Tensor& entries) override;

  /// `position` and, once there are tokens, `keys.<m>` and `values.<m>` in the order of their
  /// positions.
  CacheState state() const override;
  void load_state(const CacheState& state) override;
  std::shared_ptr<LayerCache> fresh() const override;
  void take(LayerCache& other) override;

 private:
  struct Storage;
  std::shared_ptr<Storage> storage_;
};

/// The caches of a model's layers, which advance together.
class NSIMPLEX_API LayerCaches {
 public:
  explicit LayerCaches(std::vector<std::shared_ptr<LayerCache>> layers);
  explicit LayerCaches(const std::vector<KeyValueCache>& layers);

  int64_t size() const { return static_cast<int64_t>(layers_.size()); }
  LayerCache& operator[](int64_t layer) { return *layers_.at(static_cast<size_t>(layer)); }
  const LayerCache& operator[](int64_t layer) const {
    return *layers_.at(static_cast<size_t>(layer));
  }

  int64_t position() const;  ///< of the first layer
  int64_t bytes() const;
  void reset();
  void select(const at::Tensor& entries);

  /// Every layer's state under `layers.<i>.`.
  CacheState state() const;
  void load_state(const CacheState& state);

  /// Writes the state as a safetensors file, and reads it to a device. A file that cannot be read
  /// or has other windows throws a std::runtime_error with one line.
  void save(const std::string& path) const;
  void load(const std::string& path, c10::Device device = c10::kCPU);

 private:
  std::vector<std::shared_ptr<LayerCache>> layers_;
};

/// The state of a layer that chooses its keys: the keys and values of all tokens and the rows that
/// its indexer scores them by. If the layer attends along paths, it also has the keys that every
/// token chose. A path can reach any token, so nothing is ever dropped.
///
/// The first chunk determines shapes, dtypes and device. For inference only. Not safe for two
/// threads at a time.
class NSIMPLEX_API IndexedCache : public LayerCache {
 public:
  explicit IndexedCache(int64_t order);

  /// Appends a chunk, like KeyValueCache::extend(). Returns the keys and values of all tokens.
  CachedKeys extend(const at::Tensor& query, at::TensorList keys, at::TensorList values);

  /// Appends rows [B, H, t, C] of the indexer. Returns those of all tokens, [B, H, T, C].
  at::Tensor append_index(const at::Tensor& rows);

  /// Appends chosen keys [B, t, k]. Returns those of all tokens, [B, T, k].
  at::Tensor append_table(const at::Tensor& chosen);

  const std::vector<int64_t>& window() const override;  ///< -1 on every axis
  int64_t position() const override;
  int64_t bytes() const override;
  void reset() override;
  void select(const at::Tensor& entries) override;

  /// Like KeyValueCache::state(), with `index` and `table` if there are any.
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

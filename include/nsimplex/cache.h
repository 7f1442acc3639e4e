#pragma once

#include <nsimplex/attention.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nsimplex {

/// Tensors by name: what a cache is saved as.
using CacheState = std::map<std::string, at::Tensor>;

/// Keys and values that a chunk of queries attends to.
struct CachedKeys {
  std::vector<at::Tensor> keys, values;  ///< one an axis, [B, Hk, T_m, D] and [B, Hk, T_m, Dv]
  std::vector<Window> window;            ///< one an axis, causal; empty: every query sees every key
};

/// What one layer keeps of the tokens so far. A handle, as tensors are: copies share what they
/// keep.
class NSIMPLEX_API LayerCache {
 public:
  virtual ~LayerCache() = default;

  /// Keys that each axis sees; -1: all.
  virtual const std::vector<int64_t>& window() const = 0;

  virtual int64_t position() const = 0;  ///< tokens so far: the position of the next
  virtual int64_t bytes() const = 0;     ///< memory of what is kept

  /// Forgets all tokens, shapes and storage.
  virtual void reset() = 0;

  /// Replaces the batch by entries [B'] (int64) of it, in this order; repeated ones are copied
  /// (beam search). O(bytes).
  virtual void select(const at::Tensor& entries) = 0;

  /// Everything kept, by name, and `position`. Copies.
  virtual CacheState state() const = 0;

  /// Continues where state() was taken, in a cache of the same kind and windows; else refused.
  virtual void load_state(const CacheState& state) = 0;

  /// An empty one of the same kind and windows.
  virtual std::shared_ptr<LayerCache> fresh() const = 0;

  /// Takes over what `other`, a fresh() one of this, keeps.
  virtual void take(LayerCache& other) = 0;
};

/// Keys and values of the tokens so far, so that causal self-attention goes on without computing
/// them again (decoding).
///
///     KeyValueCache cache({32, 512});                // the last keys seen on each axis
///     cache.attend(query, {k1, k2}, {v1, v2});       // the prompt, in chunks of any length
///     cache.attend(next_query, {k1, k2}, {v1, v2});  // one token after the other
///
/// gives what attention() of the whole sequence with causal = true and these windows gives, to
/// rounding, however the sequence is cut.
///
/// Every axis holds its last w_m keys and values in a ring, the key of position t in slot t mod
/// w_m; -1 holds all. Storage grows by doubling up to that: at most B Hk (D + Dv) sum_m w_m
/// elements (twice that while an unbounded axis grows). Softmax does not care about the order of
/// keys, so a single query attends to the ring as it lies, without a copy; a longer chunk attends
/// to a copy of the last w_m - 1 keys in order, followed by the chunk's own.
///
/// Batch entries advance together: a chunk has the same number of tokens for all of them and all
/// axes. Shapes, dtype and device are those of the first chunk. For inference only: tensors that
/// require a gradient are refused while gradients are recorded. Keys with positions (rotary) are
/// turned before they come here; position() counts them.
///
/// A handle, as tensors are: copies share one cache. Not for two threads at a time.
///
/// Errors: c10::ValueError, c10::TypeError or c10::NotImplementedError with one line; what a call
/// refuses by itself leaves the cache as it was.
class NSIMPLEX_API KeyValueCache : public LayerCache {
 public:
  /// `window`: keys that an axis holds and a query sees, its own position included; -1: all.
  explicit KeyValueCache(std::vector<int64_t> window);

  /// Appends a chunk: N keys [B, Hk, t, D], N values [B, Hk, t, Dv], t >= 0. O(t) copies, O(T) when
  /// storage grows.
  void append(at::TensorList keys, at::TensorList values);

  /// Appends the chunk and attends with its queries [B, Hq, t, D]. Of the options, causal is
  /// implied, windows are the cache's, and what counts keys by their place in a tensor (lengths,
  /// masks, documents, distinct, dropout) is refused.
  AttentionOutput attend(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                         const AttentionOptions& options = {});

  /// Attends with the queries of the last t positions appended; t > 1 only while no axis has
  /// dropped a key.
  AttentionOutput attend(const at::Tensor& query, const AttentionOptions& options = {}) const;

  /// What attend() attends to, for callers that call the operator themselves; the first one
  /// appends. Valid until the cache changes.
  CachedKeys extend(const at::Tensor& query, at::TensorList keys, at::TensorList values);
  CachedKeys view(const at::Tensor& query) const;

  const std::vector<int64_t>& window() const override;
  int64_t position() const override;
  int64_t bytes() const override;
  void reset() override;
  void select(const at::Tensor& entries) override;

  /// `position`, and once there are tokens `keys.<m>` and `values.<m>`, the held ones in the order
  /// of their positions.
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

  /// The state as a safetensors file, and from it to a device. What cannot be read or belongs to
  /// other windows throws a std::runtime_error of one line.
  void save(const std::string& path) const;
  void load(const std::string& path, c10::Device device = c10::kCPU);

 private:
  std::vector<std::shared_ptr<LayerCache>> layers_;
};

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

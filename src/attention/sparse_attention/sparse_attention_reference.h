// Declares how the reference reads the tuples of a sparse call, chunk by chunk.

#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "attention/sparse_attention/sparse_attention_check.h"

// The tuples of a call, flattened chunk by chunk for the reference. For every pattern, the result
// has one row and N keys per tuple.

namespace nsimplex::sparse {

/// Elements of the widest temporary on devices other than the CPU, 128 MB in fp32. There each call
/// is a kernel launch, and a small chunk would not occupy the device.
inline constexpr int64_t kDeviceChunkElements = int64_t{1} << 25;

/// The tuples of some consecutive queries of one list.
struct TupleChunk {
  int64_t first_query = 0, queries = 0;
  at::Tensor rows;               ///< int64 [n], ascending: the query, counted from first_query
  std::vector<at::Tensor> keys;  ///< N of int64 [n]
  at::Tensor missing;            ///< bool [n]: no tuples; undefined: all are tuples
};

/// One of the lists of a call. It belongs to one batch entry or to all, and to a group of key
/// heads.
class TupleList {
 public:
  TupleList(const Call& call, const Settings& settings, int64_t entry, int64_t group);

  /// The part of a [B, Hk, ...] tensor to which the list applies.
  at::Tensor part(const at::Tensor& tensor) const;
  /// The same of weights [Hk, ...].
  at::Tensor heads(const at::Tensor& weights) const;

  /// Calls visit(chunk) for consecutive queries with at most `most` tuples per chunk, or for one
  /// query. A list without queries is one empty chunk.
  void for_each_chunk(int64_t most, const std::function<void(const TupleChunk&)>& visit) const;

  /// The number of tuples of each query, int64 [Tq].
  at::Tensor counts() const;

 private:
  TupleChunk listed(int64_t first, int64_t count) const;
  TupleChunk combinations(int64_t first, int64_t count) const;
  TupleChunk chains(int64_t first, int64_t count) const;
  /// The same with as many rows for every query, whatever the sets hold.
  TupleChunk all_combinations(int64_t first, int64_t count) const;
  TupleChunk all_chains(int64_t first, int64_t count) const;
  /// The number of queries from `first` on that make a chunk.
  int64_t chunk_length(int64_t first, int64_t most) const;

  const Settings& settings_;
  int64_t queries_, entry_, group_, heads_;
  bool mapped_ = false;  ///< whether vmap maps over the sets
  at::Tensor indices_;   ///< int64; list: [nnz, N]; otherwise the sets, [rows, k]
  at::Tensor offsets_;   ///< int64 [Tq + 1], on the CPU
};

/// Whether products of matrices compute the call (sparse_attention_products.cpp). They support sets
/// of keys with the product form and reducer, on devices without a kernel. They are not
/// differentiable.
bool has_products(const Call& call);
Output products_forward(const Call& call);
Gradients products_backward(const BackwardCall& call);

}  // namespace nsimplex::sparse

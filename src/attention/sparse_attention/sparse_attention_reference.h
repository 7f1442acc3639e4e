#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "attention/sparse_attention/sparse_attention_check.h"

// The tuples of a call, flattened chunk by chunk for the reference version: whatever the pattern,
// what comes out is one row and N keys a tuple.

namespace nsimplex::sparse {

/// Elements of the widest temporary on devices other than the CPU, 128 MB in fp32: each call is a
/// launch there, which a small chunk does not fill.
inline constexpr int64_t kDeviceChunkElements = int64_t{1} << 25;

/// The tuples of some neighbouring queries of one list.
struct TupleChunk {
  int64_t first_query = 0, queries = 0;
  at::Tensor rows;               ///< int64 [n], ascending: query, counted from first_query
  std::vector<at::Tensor> keys;  ///< N of int64 [n]
};

/// One of the lists of a call: a batch entry's, or all entries', and a group of key heads'.
class TupleList {
 public:
  TupleList(const Call& call, const Settings& settings, int64_t entry, int64_t group);

  /// The part of a [B, Hk, ...] tensor that the list is for.
  at::Tensor part(const at::Tensor& tensor) const;
  /// The same of weights [Hk, ...].
  at::Tensor heads(const at::Tensor& weights) const;

  /// visit(chunk) for consecutive queries with at most `most` tuples a chunk, or one query. A list
  /// without queries is one chunk of none.
  void for_each_chunk(int64_t most, const std::function<void(const TupleChunk&)>& visit) const;

  /// Tuples of every query, int64 [Tq].
  at::Tensor counts() const;

 private:
  TupleChunk listed(int64_t first, int64_t count) const;
  TupleChunk combinations(int64_t first, int64_t count) const;
  TupleChunk chains(int64_t first, int64_t count) const;
  /// Queries from `first` on that make a chunk.
  int64_t chunk_length(int64_t first, int64_t most) const;

  const Settings& settings_;
  int64_t queries_, entry_, group_, heads_;
  at::Tensor indices_;  ///< int64; list: [nnz, N]; otherwise the sets, [rows, k]
  at::Tensor offsets_;  ///< int64 [Tq + 1], on the CPU
};

/// Sets of keys under the product form and reducer, on devices without a kernel, by products of
/// matrices (sparse_attention_products.cpp). Not to be differentiated.
bool has_products(const Call& call);
Output products_forward(const Call& call);
Gradients products_backward(const BackwardCall& call);

}  // namespace nsimplex::sparse

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

// Plain description of attention between two lists of tuples, as far as it is loops: everything
// that is a matrix product or elementwise is done outside. No ownership.
//
// Queries and keys meet in groups: all queries of a group see all keys of it, but for pairs that
// share a node they must not share. A query and a key are in at most one group of a relation.

namespace nsimplex::kernels {

struct TupleRelation {
  int64_t groups = 0;
  const int32_t* key_offsets = nullptr;    ///< [groups + 1]
  const int32_t* keys = nullptr;           ///< rows of keys and values, group by group
  const int32_t* query_offsets = nullptr;  ///< [groups + 1]
  const int32_t* queries = nullptr;        ///< rows of queries, group by group
};

/// Rows of heads x width channels, `stride` apart, the heads one after the other.
template <class T>
struct HeadRows {
  const T* data = nullptr;
  int64_t stride = 0, width = 0;

  const T* row(int64_t row, int64_t head) const { return data + row * stride + head * width; }
};

enum class PairWeight {
  softmax,  ///< 2^(q . k - shift of the query)
  product,  ///< q . k
};

inline constexpr int64_t kMaxTupleBlocks = 7;  ///< distinct nodes of a tuple

/// One weight a pair: what is summed over the keys of a query, and its gradients. Sums run in
/// double over chunks of keys, which are summed in T.
template <class T>
struct PairAttention {
  TupleRelation relation;
  PairWeight weight = PairWeight::softmax;
  int64_t heads = 0;
  HeadRows<T> query, key, value;  ///< a softmax's query times log2(e) and the scale

  /// A pair is left out where a node of these of its key is one of these of its query.
  int64_t key_only = 0, query_only = 0;
  const int32_t* key_nodes[kMaxTupleBlocks] = {};    ///< [rows of keys] each
  const int32_t* query_nodes[kMaxTupleBlocks] = {};  ///< [rows of queries] each

  int64_t largest_group = INT64_MAX;  ///< keys of the groups that count

  /// Forward: taken over and written back, so that the pairs of several relations add up.
  T* shift = nullptr;      ///< [queries, heads]: the running maximum of a softmax
  double* sums = nullptr;  ///< [queries, heads, value width + 1]: of w v and of w

  /// Backward: w has the gradient g . (v, 1). A softmax's shift is the logarithm of its sum.
  const T* grad = nullptr;       ///< [queries, heads, value width + 1]
  double* grad_query = nullptr;  ///< [queries, heads, width], added to; so are the next two
  double* grad_key = nullptr;
  double* grad_value = nullptr;
};

/// The table of a group that so many rows of the other side make, or so many rows meet, is made
/// ahead, in blocks of at most as many rows and once for all who meet it: work that one thread does
/// not have to do alone.
inline constexpr int64_t kLargeTableGroup = 512;
inline constexpr bool is_large_table(int64_t making, int64_t meeting) {
  return making > 0 && std::max(making, meeting) > kLargeTableGroup;
}

/// Tables of the groups of a relation, added or subtracted.
struct TableMember {
  TupleRelation relation;
  double sign = 1;
  const int32_t* groups = nullptr;  ///< of each group of rows the relation's, or -1; null: the same

  int64_t group_of(int64_t rows) const { return groups == nullptr ? rows : groups[rows]; }
};

/// The weight q . k summed without pairs: of groups of keys tables of k (v, 1)^T, which every query
/// of a group meets; their sum where there are several. For keys it is the other way round. All of
/// it in double, since tables are subtracted from each other.
template <class T>
struct TableAttention {
  int64_t groups = 0;                ///< of rows of the side that is written
  const int32_t* offsets = nullptr;  ///< [groups + 1]
  const int32_t* rows = nullptr;
  std::span<const TableMember> members;
  int64_t heads = 0;
  HeadRows<T> query, key, value;
  const uint8_t* skip = nullptr;  ///< [queries]: those that take no part

  /// Queries: sums as of PairAttention. With gradients g_out of a query's result also what the
  /// gradient of the query is made of once its sum of w is known, for the tables of both are one.
  double* sums = nullptr;
  HeadRows<T> grad_out;          ///< [queries]
  double* grad_query = nullptr;  ///< [queries, heads, width]: of (g_out . v) k
  double* key_sums = nullptr;    ///< [queries, heads, width]: of k

  /// Keys: as of PairAttention.
  const T* grad = nullptr;
  double* grad_key = nullptr;
  double* grad_value = nullptr;
};

}  // namespace nsimplex::kernels
